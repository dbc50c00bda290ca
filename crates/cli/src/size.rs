//! Sizes in bytes as people write and read them.

/// Parses `4096`, `64k`, `256MiB`, `1.5GB`. Decimal units are powers of 1000, binary ones (`KiB`)
/// of 1024; case does not matter.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let wrong = || format!("{text:?} is not a size; write bytes or a unit, such as 256MiB or 1GB");
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "t" | "tb" => 1_000_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        _ => return Err(wrong()),
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor).ok_or_else(wrong);
    }
    let value = number.parse::<f64>().map_err(|_| wrong())? * factor as f64;
    if value.is_finite() && value < 9e18 {
        Ok(value as u64)
    } else {
        Err(wrong())
    }
}

/// A size that is not zero.
pub(crate) fn parse_positive(text: &str) -> Result<u64, String> {
    parse(text).and_then(|n| {
        if n == 0 {
            Err("0 is too little".to_owned())
        } else {
            Ok(n)
        }
    })
}

/// Shows a size with three significant digits in binary units.
pub(crate) fn show(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    // 999.5 would be shown as 1000, which is four digits.
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let decimals = if value < 9.995 {
        2
    } else {
        usize::from(value < 99.95)
    };
    format!("{value:.decimals$} {}", UNITS[unit])
}

/// Shows a count with commas between thousands.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Shows how many of something there are: `1 object`, `1,200 objects`.
pub(crate) fn many(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("64k", 64_000),
            ("256MiB", 256 << 20),
            ("1GB", 1_000_000_000),
            ("1.5 GiB", 3 << 29),
            ("7b", 7),
        ] {
            assert_eq!(parse(text).unwrap(), bytes, "{text}");
        }
        for bad in [
            "",
            "MiB",
            "1XB",
            "-1",
            "1..2",
            "99999999999TB",
            "1e400",
            "nan",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert!(parse_positive("0").is_err());
    }

    #[test]
    fn sizes_are_shown() {
        assert_eq!(show(1023), "1023 B");
        assert_eq!(show(1024), "1.00 KiB");
        assert_eq!(show(256 << 20), "256 MiB");
        assert_eq!(show((1 << 20) - 1), "1.00 MiB");
        assert_eq!(show(u64::MAX), "16.0 EiB");
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(many(1, "object"), "1 object");
        assert_eq!(many(0, "object"), "0 objects");
    }
}
