//! Shows NumPy's times: counts of a unit since 1970, or of a unit alone.

use chrono::{DateTime, Datelike, NaiveDate, Timelike};
use hyperslab::format::TimeUnit;

/// NumPy's "not a time".
const NOT_A_TIME: i64 = i64::MIN;

/// The date as ISO 8601 with the digits its unit has. Units finer than nanoseconds, and dates that
/// no calendar of ours reaches, are shown as their count.
pub(crate) fn date(count: i64, unit: &TimeUnit) -> String {
    if count == NOT_A_TIME {
        return "NaT".to_owned();
    }
    let bare = || span(count, unit);
    let Some(count) = count.checked_mul(i64::from(unit.scale)) else {
        return bare();
    };
    let months = match unit.unit.as_str() {
        "Y" => count.checked_mul(12),
        "M" => Some(count),
        _ => None,
    };
    if let Some(months) = months {
        let year = 1970 + months.div_euclid(12);
        let month = months.rem_euclid(12) + 1;
        return match unit.unit.as_str() {
            "Y" => format!("{year:04}"),
            _ => format!("{year:04}-{month:02}"),
        };
    }
    let (per_second, digits): (i64, usize) = match unit.unit.as_str() {
        "s" => (1, 0),
        "ms" => (1_000, 3),
        "us" | "μs" => (1_000_000, 6),
        "ns" => (1_000_000_000, 9),
        whole => return date_of_days(count, whole).unwrap_or_else(bare),
    };
    let (seconds, rest) = (count.div_euclid(per_second), count.rem_euclid(per_second));
    let Some(at) = DateTime::from_timestamp(seconds, 0) else {
        return bare();
    };
    let clock = format!(
        "{}T{:02}:{:02}:{:02}",
        day(at.date_naive()),
        at.hour(),
        at.minute(),
        at.second()
    );
    if digits == 0 {
        clock
    } else {
        format!("{clock}.{rest:0digits$}")
    }
}

/// Dates of units from minutes to weeks.
fn date_of_days(count: i64, unit: &str) -> Option<String> {
    let seconds = match unit {
        "m" => 60,
        "h" => 3_600,
        "D" => 86_400,
        "W" => 7 * 86_400,
        _ => return None,
    };
    let at = DateTime::from_timestamp(count.checked_mul(seconds)?, 0)?;
    let date = day(at.date_naive());
    Some(match unit {
        "m" => format!("{date}T{:02}:{:02}", at.hour(), at.minute()),
        "h" => format!("{date}T{:02}", at.hour()),
        _ => date,
    })
}

fn day(date: NaiveDate) -> String {
    format!("{:04}-{:02}-{:02}", date.year(), date.month(), date.day())
}

/// The count with its unit.
pub(crate) fn span(count: i64, unit: &TimeUnit) -> String {
    match (count, unit.unit.as_str(), unit.scale) {
        (NOT_A_TIME, _, _) => "NaT".to_owned(),
        (count, "generic", _) => count.to_string(),
        (count, name, 1) => format!("{count} {name}"),
        (count, name, scale) => format!("{count} × {scale} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_follow_numpy() {
        let unit = |unit: &str, scale| TimeUnit::new(unit, scale).unwrap();
        for (count, name, scale, text) in [
            (0, "s", 1, "1970-01-01T00:00:00"),
            (-1, "ms", 1, "1969-12-31T23:59:59.999"),
            (
                1_700_000_000_000_000_001,
                "ns",
                1,
                "2023-11-14T22:13:20.000000001",
            ),
            (19_675, "D", 1, "2023-11-14"),
            (2, "D", 10, "1970-01-21"),
            (54, "Y", 1, "2024"),
            (-1, "M", 1, "1969-12"),
            (25, "h", 1, "1970-01-02T01"),
            (61, "m", 1, "1970-01-01T01:01"),
            (1, "W", 1, "1970-01-08"),
            (7, "ps", 1, "7 ps"),
            (i64::MAX, "D", 1, "9223372036854775807 D"),
            (i64::MIN, "s", 1, "NaT"),
        ] {
            assert_eq!(date(count, &unit(name, scale)), text);
        }
        assert_eq!(span(5, &unit("s", 10)), "5 × 10 s");
        assert_eq!(span(5, &unit("generic", 1)), "5");
    }
}
