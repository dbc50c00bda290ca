//! What a caller asks of the function.
//!
//! Plain data, shared by client and server; [`crate::job`] checks it before anything is done.
//! Offsets and lengths are bytes.

use hyperslab_index::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of the protocol.
pub const VERSION: u32 = 1;

/// The only operation so far.
const SLAB: &str = "slab";

/// Asks for some bytes of one object, or of several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlabRequest {
    /// The version of the protocol: [`VERSION`].
    pub version: u32,
    /// The operation: `slab`.
    pub op: String,
    /// URL of the object without credentials and options: `s3://bucket/key`, `az://`, `gs://`,
    /// `file://`, `http://` or `https://`.
    pub object: String,
    /// The state of the object that is meant; another one is a conflict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// The caller takes no longer answer.
    pub size_limit: u64,
    /// The blocks to cut from, in the order of the answer.
    pub units: Vec<Unit>,
    /// Further objects; their bytes follow in the answer, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<Part>,
}

/// What is asked of a further object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// As in [`SlabRequest::object`].
    pub object: String,
    /// As in [`SlabRequest::etag`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// As in [`SlabRequest::units`].
    pub units: Vec<Unit>,
}

/// A block of the object that is decoded by itself: a chunk, or an inner chunk of a shard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unit {
    /// First byte of the block in the object and the byte after its last; `None` is the whole
    /// object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<(u64, u64)>,
    /// How to decode the block; `None` takes its bytes as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub codecs: Option<UnitCodecs>,
    /// What to cut out of the decoded block, in the order of the answer.
    pub runs: Vec<StridedRun>,
}

/// How to decode a block, in the words of Zarr v3 metadata.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitCodecs {
    /// The list `codecs`.
    pub codecs: Value,
    /// The field `data_type`.
    pub data_type: Value,
    /// The field `fill_value`.
    #[serde(default)]
    pub fill_value: Value,
    /// Shape of the block, in the array's order of dimensions.
    pub shape: Vec<u64>,
}

/// Pieces of equal length at equal distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StridedRun {
    /// Where the first piece starts in the decoded block.
    pub start: u64,
    /// Bytes of a piece.
    pub len: u64,
    /// From the start of a piece to the start of the next.
    pub step: u64,
    /// How many pieces.
    pub count: u64,
}

impl SlabRequest {
    /// A request for `units` of `object` in whatever state it is, as long as it is one.
    pub fn new(object: impl Into<String>, units: Vec<Unit>) -> Result<Self> {
        let mut request = SlabRequest {
            version: VERSION,
            op: SLAB.to_owned(),
            object: object.into(),
            etag: None,
            size_limit: 0,
            units,
            more: Vec::new(),
        };
        request.size_limit = request.payload_len()?;
        Ok(request)
    }

    /// The same request for one state of the object.
    #[must_use]
    pub fn pinned(mut self, etag: Option<String>) -> Self {
        self.etag = etag;
        self
    }

    /// The same request for a further object as well.
    pub fn and(mut self, part: Part) -> Result<Self> {
        self.more.push(part);
        self.size_limit = self.payload_len()?;
        Ok(self)
    }

    /// Objects, states and units, in the order of the answer.
    pub fn parts(&self) -> impl Iterator<Item = (&str, Option<&str>, &[Unit])> {
        let first = (&*self.object, self.etag.as_deref(), &*self.units);
        let more = self.more.iter();
        std::iter::once(first)
            .chain(more.map(|part| (&*part.object, part.etag.as_deref(), &*part.units)))
    }

    /// How many bytes the answer has, without its preamble.
    pub fn payload_len(&self) -> Result<u64> {
        self.parts()
            .flat_map(|(_, _, units)| units)
            .flat_map(|unit| &unit.runs)
            .try_fold(0u64, |sum, run| sum.checked_add(run.bytes()?))
            .ok_or_else(|| Error::invalid("the request asks for more bytes than can be counted"))
    }

    /// The body of the request.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self)
            .map_err(|e| Error::internal("a request to the function has no JSON").with_source(e))
    }

    /// Reads the body of a request.
    pub fn parse(body: &[u8]) -> Result<Self> {
        // Version and operation first: a newer client shall learn that it is too new, not that
        // some field of its is unknown.
        #[derive(Deserialize)]
        struct Head {
            version: u32,
            op: String,
        }
        let wrong = |e: serde_json::Error| {
            Error::invalid(format!("the body is no request to the function: {e}"))
        };
        let head: Head = serde_json::from_slice(body).map_err(wrong)?;
        if head.version != VERSION {
            return Err(Error::invalid(format!(
                "the request has version {}, but this function speaks version {VERSION}",
                head.version
            ))
            .with_hint("deploy the function that came with the client"));
        }
        if head.op != SLAB {
            return Err(
                Error::invalid("the request's operation is not known to this function")
                    .with_hint("the only operation is \"slab\""),
            );
        }
        serde_json::from_slice(body).map_err(wrong)
    }
}

impl Unit {
    /// The whole object, as it is.
    pub fn raw(runs: Vec<StridedRun>) -> Self {
        Unit {
            range: None,
            codecs: None,
            runs,
        }
    }

    /// The whole object, decoded.
    pub fn decoded(codecs: UnitCodecs, runs: Vec<StridedRun>) -> Self {
        Unit {
            range: None,
            codecs: Some(codecs),
            runs,
        }
    }

    /// The same for some bytes of the object.
    #[must_use]
    pub fn at(mut self, range: std::ops::Range<u64>) -> Self {
        self.range = Some((range.start, range.end));
        self
    }
}

impl StridedRun {
    /// One piece.
    pub fn plain(range: std::ops::Range<u64>) -> Self {
        let len = range.end.saturating_sub(range.start);
        StridedRun {
            start: range.start,
            len,
            step: len,
            count: 1,
        }
    }

    /// Bytes of all pieces; `None` if they cannot be counted.
    pub fn bytes(&self) -> Option<u64> {
        self.len.checked_mul(self.count)
    }

    /// The byte after the last piece; `None` if it cannot be counted or there is no piece.
    pub fn end(&self) -> Option<u64> {
        let last = self.count.checked_sub(1)?.checked_mul(self.step)?;
        self.start.checked_add(last)?.checked_add(self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_survive_their_json() {
        let codecs = UnitCodecs {
            codecs: serde_json::json!(["bytes", {"name": "zstd"}]),
            data_type: "uint8".into(),
            fill_value: 0.into(),
            shape: vec![4, 4],
        };
        let run = StridedRun {
            start: 0,
            len: 2,
            step: 4,
            count: 4,
        };
        let units = vec![
            Unit::decoded(codecs, vec![run]).at(10..20),
            Unit::raw(vec![StridedRun::plain(3..5)]),
        ];
        let request = SlabRequest::new("s3://b/k", units)
            .unwrap()
            .pinned(Some("\"e\"".into()));
        assert_eq!(request.payload_len().unwrap(), 10);
        let part = Part {
            object: "s3://b/l".into(),
            etag: None,
            units: vec![Unit::raw(vec![StridedRun::plain(3..6)])],
        };
        let request = request.and(part).unwrap();
        assert_eq!(request.payload_len().unwrap(), 13);
        assert_eq!(request.size_limit, 13);
        let bytes = request.to_bytes().unwrap();
        assert_eq!(SlabRequest::parse(&bytes).unwrap(), request);
    }

    #[test]
    fn other_versions_and_operations_are_named() {
        for (body, word) in [
            (r#"{"version":2,"op":"slab","new":1}"#, "version 2"),
            (r#"{"version":1,"op":"sum"}"#, "operation"),
            (r#"{"version":1,"op":"slab"}"#, "missing field"),
            ("<html>", "no request"),
            ("", "no request"),
        ] {
            let error = SlabRequest::parse(body.as_bytes()).unwrap_err();
            assert!(error.message().contains(word), "{error}");
        }
    }

    #[test]
    fn sums_do_not_overflow() {
        let run = StridedRun {
            start: 1,
            len: u64::MAX,
            step: 1,
            count: 2,
        };
        assert_eq!(run.bytes(), None);
        assert_eq!(run.end(), None);
        assert!(SlabRequest::new("s3://b/k", vec![Unit::raw(vec![run])]).is_err());
    }
}
