//! Reads from servers that ignore byte ranges: the object is read whole, and the range taken out.
//!
//! Whoever reads one part of an object most likely reads another, as all do that read HDF5. So the last
//! object is held, and the server only asked whether it is still the same.

use bytes::Bytes;
use object_store::GetOptions;

use super::bucket::Bucket;
use super::read::unchanged;
use super::version::conditions;
use crate::traits::resolve_range;
use crate::{Error, Get, Got, Meta, Result};

/// The largest object that is read whole because its server ignores byte ranges.
const MAX_WHOLE_READ: u64 = 256 << 20;

/// An object that was read whole.
#[derive(Clone)]
pub(super) struct Whole {
    key: String,
    meta: Meta,
    bytes: Bytes,
}

impl Whole {
    /// The condition under which the server sends the object again; `None` if it cannot tell.
    fn condition(&self) -> Option<GetOptions> {
        let held = Get {
            if_none_match: Some(self.meta.etag.clone()?),
            ..Get::default()
        };
        Some(conditions(&held))
    }
}

impl Bucket {
    /// Reads a range of an object by reading all of it, unless that is held and still the same.
    pub(super) async fn fetch_whole(&self, key: &str, options: &Get) -> Result<Got> {
        let client = self.client()?;
        let held = client.held().filter(|whole| whole.key == key);
        let whole = match held.and_then(|whole| Some((whole.condition()?, whole))) {
            Some((condition, whole)) => match self.read_whole(key, condition).await? {
                Some(newer) => newer,
                None => whole,
            },
            // What the caller has need not be sent.
            None => match self.read_whole(key, conditions(options)).await? {
                Some(whole) => whole,
                None => return Ok(Got::unchanged(unchanged(options))),
            },
        };
        client.hold(whole.clone());
        let etag = &whole.meta.etag;
        if options.if_match.is_some() && options.if_match != *etag {
            return Err(self.changed(key));
        }
        if options.if_none_match.is_some() && options.if_none_match == *etag {
            return Ok(Got::unchanged(unchanged(options)));
        }
        let range = resolve_range(options.range.as_ref(), whole.meta.size, || self.name(key))?;
        let bytes = whole.bytes.slice(range.start as usize..range.end as usize);
        Ok(Got {
            meta: whole.meta,
            range,
            body: bytes.into(),
            not_modified: false,
        })
    }

    /// Reads an object under a condition; `None` if that does not hold.
    async fn read_whole(&self, key: &str, condition: GetOptions) -> Result<Option<Whole>> {
        let parts = match self.read(key, condition, MAX_WHOLE_READ).await {
            Ok(Some(parts)) => parts,
            Ok(None) => return Ok(None),
            Err((e, _)) => return Err(e),
        };
        if parts.0.size > MAX_WHOLE_READ {
            return Err(Error::invalid(format!(
                "{} has {} bytes, and its server cannot read a part of it",
                self.name(key),
                parts.0.size
            ))
            .with_hint(
                "use a web server that supports range requests, or download the file first",
            ));
        }
        let got = self.got(key, &Get::default(), Some(parts))?;
        Ok(Some(Whole {
            key: key.to_owned(),
            meta: got.meta,
            bytes: got.body.into_bytes()?,
        }))
    }
}
