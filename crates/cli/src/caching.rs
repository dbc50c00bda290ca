//! Values of the options of the cache on local disk.

use std::time::Duration;

use hyperslab::DiskCacheOptions;

use crate::args::Global;

/// What the cache may take where nobody says.
const BYTES: u64 = 1 << 30;

/// The cache that the options ask for.
pub(crate) fn options(global: &Global) -> Option<DiskCacheOptions> {
    // An empty variable is one that is not set.
    let dir = global
        .cache
        .as_ref()
        .filter(|dir| !dir.as_os_str().is_empty());
    dir.map(|dir| DiskCacheOptions {
        dir: dir.clone(),
        bytes: global.cache_bytes.unwrap_or(BYTES),
    })
}

/// A time such as `30s` or `1h`; a bare number is seconds.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds) => Ok(Duration::from_secs(seconds)),
        Err(_) => humantime::parse_duration(text)
            .map_err(|_| "it has to be a time such as 30s or 1h".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_asks_for_a_cache() {
        let mut global = Global {
            cache_bytes: Some(7),
            ..Global::default()
        };
        assert!(options(&global).is_none());
        global.cache = Some("".into());
        assert!(options(&global).is_none());
        global.cache = Some("x".into());
        assert_eq!(options(&global).unwrap().bytes, 7);
        global.cache_bytes = None;
        assert_eq!(options(&global).unwrap().bytes, BYTES);
    }

    #[test]
    fn times_are_read() {
        assert_eq!(time("90").unwrap(), Duration::from_secs(90));
        assert_eq!(time("0").unwrap(), Duration::ZERO);
        assert_eq!(time("1h 30m").unwrap(), Duration::from_secs(5400));
        for wrong in ["", "-1", "soon"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
