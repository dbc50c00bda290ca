//! Values of the options of the cache on local disk.

use hyperslab::DiskCacheOptions;
use hyperslab::settings::DISK_CACHE_BYTES;

use crate::args::Global;

/// The cache that the options ask for.
pub(crate) fn options(global: &Global) -> Option<DiskCacheOptions> {
    // An empty variable is one that is not set.
    let dir = global
        .cache
        .as_ref()
        .filter(|dir| !dir.as_os_str().is_empty());
    dir.map(|dir| DiskCacheOptions {
        dir: dir.clone(),
        bytes: global.cache_bytes.unwrap_or(DISK_CACHE_BYTES),
    })
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
        assert_eq!(options(&global).unwrap().bytes, DISK_CACHE_BYTES);
    }
}
