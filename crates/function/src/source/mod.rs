//! Where the function reads from: one source for each prefix of the allow-list.
//!
//! Between [`crate::AllowList`] and the stores. Sources are opened when the service starts, from
//! the operator's prefixes and environment alone.
//!
//! Invariant: a request cannot choose where a read connects; that is the host of its prefix, or a
//! file below it, and redirects and symbolic links that lead elsewhere are refused: the clients of the
//! store crate stay on the server that they were pointed at.

mod web;

use std::path::{Path, PathBuf};

use hyperslab_index::{Error, Result};
use hyperslab_store::{Body, Get, GetRange, Options, StoreRef, open_with};

use self::web::Web;
use crate::AllowList;
use crate::job::Wanted;

/// What is behind a prefix.
pub(crate) enum Source {
    /// A bucket, or the process's memory.
    Store(StoreRef),
    /// A directory of this machine.
    Files { store: StoreRef, root: PathBuf },
    /// A web server.
    Web(Web),
}

/// What was read of an object.
#[derive(Debug)]
pub(crate) struct Piece {
    /// The state that it is of, where the store tells.
    pub(crate) etag: Option<String>,
    /// The bytes; of a local file, still to be read.
    pub(crate) body: Body,
}

/// The sources of all prefixes of `allow`, in its order.
pub(crate) fn open_all(allow: &AllowList, options: &Options) -> Result<Vec<Source>> {
    allow
        .prefixes()
        .iter()
        .map(|prefix| Source::open(prefix, options))
        .collect()
}

impl Source {
    fn open(prefix: &str, options: &Options) -> Result<Self> {
        if prefix.starts_with("http://") || prefix.starts_with("https://") {
            return Web::open(prefix).map(Source::Web);
        }
        let store = open_with(prefix, options)?.store;
        Ok(match prefix.strip_prefix("file://") {
            None => Source::Store(store),
            Some(path) => Source::Files {
                store,
                root: PathBuf::from(percent_decode(path)?),
            },
        })
    }

    /// Reads the object `key`, which passed the allow-list, in the state `pin` if there is one.
    pub(crate) async fn read(
        &self,
        key: &str,
        wanted: &Wanted,
        pin: Option<&str>,
    ) -> Result<Piece> {
        let (store, key) = match self {
            Source::Web(web) => return web.read(key, wanted, pin).await,
            Source::Store(store) => (store, key.to_owned()),
            Source::Files { store, root } => {
                let key = percent_decode(key)?;
                check_links(root, &key)?;
                (store, key)
            }
        };
        let range = match wanted {
            Wanted::Range(range) => GetRange::Bounded(range.clone()),
            // As many of the last bytes as there is room for: the whole object, unless it is too
            // large, which its size then tells. A plain read would take in anything.
            Wanted::Whole { limit } => GetRange::Suffix(*limit),
        };
        let options = Get {
            range: Some(range),
            if_match: pin.map(str::to_owned),
            if_none_match: None,
        };
        let got = store.get(&key, options).await?;
        if let Wanted::Whole { limit } = wanted
            && got.meta.size > *limit
        {
            return Err(too_large(got.meta.size, *limit));
        }
        Ok(Piece {
            etag: got.meta.etag,
            body: got.body,
        })
    }
}

/// The error for an object that is larger than its unit can be.
fn too_large(size: u64, limit: u64) -> Error {
    Error::data(format!(
        "the object has {size} bytes, but its codecs and the function's memory allow {limit}"
    ))
}

/// Refuses a file that symbolic links put outside of `root`. An absent file is left to the store.
fn check_links(root: &Path, key: &str) -> Result<()> {
    let real = match (root.canonicalize(), root.join(key).canonicalize()) {
        (Ok(root), Ok(file)) => file.starts_with(root),
        _ => true,
    };
    match real {
        true => Ok(()),
        false => Err(Error::denied(
            "the object is a link that leads out of its allowed prefix",
        )),
    }
}

/// The text behind the escapes of a `file` URL, as the store takes it.
fn percent_decode(text: &str) -> Result<String> {
    let wrong = || Error::invalid("the object's URL has a malformed percent sign");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let digits = tail.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let byte = digits
            .filter(|two| two.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|two| u8::from_str_radix(two, 16).ok())
            .ok_or_else(wrong)?;
        bytes.push(byte);
        rest = &tail[2..];
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone_once() {
        assert_eq!(percent_decode("/a%20b%2520").unwrap(), "/a b%20");
        for bad in ["%", "%2", "%zz", "%ff", "%+1"] {
            assert!(percent_decode(bad).is_err(), "{bad}");
        }
    }
}
