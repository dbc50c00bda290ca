//! Shapes as people write them on the command line.

/// Sides such as `10,20`, or a word in their place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Chosen by us.
    Auto,
    /// None at all.
    None,
    /// As given.
    Sides(Vec<u64>),
}

/// Parses sides: `10,20`, also in brackets as Python prints them; empty for a scalar.
pub(crate) fn parse_sides(text: &str) -> Result<Vec<u64>, String> {
    let inner = text
        .trim()
        .trim_start_matches(['(', '['])
        .trim_end_matches([')', ']'])
        .trim();
    if inner.is_empty() || inner == "scalar" {
        return Ok(Vec::new());
    }
    let inner = inner.strip_suffix(',').unwrap_or(inner);
    inner
        .split(',')
        .map(|side| side.trim().replace('_', "").parse::<u64>())
        .collect::<Result<_, _>>()
        .map_err(|_| format!("{text:?} is not a list of sides such as 100,200"))
}

/// A parsed shape; a type of its own, since lists mean something else to the argument parser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sides(pub(crate) Vec<u64>);

impl std::str::FromStr for Sides {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse_sides(text).map(Sides)
    }
}

impl std::str::FromStr for Extent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "auto" => Ok(Extent::Auto),
            "none" => Ok(Extent::None),
            sides => parse_sides(sides).map(Extent::Sides),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_read() {
        assert_eq!(parse_sides("100, 200").unwrap(), [100, 200]);
        assert_eq!(parse_sides("(5,)").unwrap(), [5]);
        assert_eq!(parse_sides("[1_000]").unwrap(), [1000]);
        assert!(parse_sides("()").unwrap().is_empty());
        for bad in ["a", "1,,2", "-1", "1.5", "99999999999999999999"] {
            assert!(parse_sides(bad).is_err(), "{bad}");
        }
        assert_eq!("none".parse::<Extent>().unwrap(), Extent::None);
    }
}
