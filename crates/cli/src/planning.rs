//! Values of the options by which reads are planned.

use std::path::Path;
use std::sync::Arc;

use hyperslab::{PriceBook, Profile};

/// φ: a number of seconds, `inf` for money only.
pub(crate) fn phi(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(phi) if phi >= 0.0 => Ok(phi),
        _ => Err("it has to be 0 or more, or inf".into()),
    }
}

/// A profile by its file or its name.
pub(crate) fn profile(text: &str) -> Result<Arc<Profile>, String> {
    load(text, Profile::built_in, Profile::parse)
}

/// A price book by its file or its name.
pub(crate) fn prices(text: &str) -> Result<Arc<PriceBook>, String> {
    load(text, PriceBook::built_in, PriceBook::parse)
}

fn load<T>(
    text: &str,
    built_in: fn(&str) -> hyperslab::Result<T>,
    parse: fn(&str) -> hyperslab::Result<T>,
) -> Result<Arc<T>, String> {
    if let Ok(found) = built_in(text) {
        return Ok(Arc::new(found));
    }
    let content = std::fs::read_to_string(Path::new(text))
        .map_err(|e| format!("there is no such name built in, and no such file: {e}"))?;
    parse(&content)
        .map(Arc::new)
        .map_err(|e| e.message().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked() {
        assert_eq!(phi("inf").unwrap(), f64::INFINITY);
        assert_eq!(phi("0").unwrap(), 0.0);
        for wrong in ["-1", "nan", "much", ""] {
            assert!(phi(wrong).is_err(), "{wrong}");
        }
        assert_eq!(profile("gcp").unwrap().name, "gcp");
        assert!(
            profile("no/such/file")
                .unwrap_err()
                .contains("no such file")
        );
        assert_eq!(prices("none").unwrap().name, "none");
    }
}
