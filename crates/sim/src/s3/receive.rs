//! Takes in the body of an upload and checks every digest that the client sent with it.

use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use http::HeaderMap;
use s3s::checksum::ChecksumHasher;
use s3s::crypto::{Checksum as _, Crc32, Crc32c, Crc64Nvme, Md5, Sha1, Sha256};
use s3s::dto::StreamingBlob;
use s3s::{S3Error, S3ErrorCode, S3Result, StdError, TrailingHeaders, s3_error};

use crate::text::{base64, hex};

/// The most that one request can carry, as on S3.
const MOST_BYTES: u64 = 5 << 30;

/// What to trust of a Content-Length before the bytes have come.
const MOST_RESERVED: u64 = 64 << 20;

const ALGORITHMS: [&str; 5] = [
    "x-amz-checksum-crc32",
    "x-amz-checksum-crc32c",
    "x-amz-checksum-crc64nvme",
    "x-amz-checksum-sha1",
    "x-amz-checksum-sha256",
];

/// A body that has arrived whole and is what the client says it is.
pub(crate) struct Received {
    pub(crate) bytes: Bytes,
    /// The MD5 digest, which is S3's ETag.
    pub(crate) etag: String,
}

/// Reads a body. Nothing is stored if a digest is wrong or the body ends early.
pub(crate) async fn receive(
    body: Option<StreamingBlob>,
    length: Option<i64>,
    headers: &HeaderMap,
    trailers: Option<&TrailingHeaders>,
) -> S3Result<Received> {
    let length = length.and_then(|length| u64::try_from(length).ok());
    let too_large = || s3_error!(EntityTooLarge, "One request carries at most 5 GiB");
    if length.is_some_and(|length| length > MOST_BYTES) {
        return Err(too_large());
    }
    let reserved = usize::try_from(length.unwrap_or(0).min(MOST_RESERVED)).unwrap_or(0);
    let mut bytes = BytesMut::with_capacity(reserved);
    let mut md5 = Md5::new();
    let mut checksums = hasher(headers);
    if let Some(mut body) = body {
        while let Some(piece) = body.next().await {
            let piece = piece.map_err(|error| broken(&error))?;
            if (bytes.len() + piece.len()) as u64 > MOST_BYTES {
                return Err(too_large());
            }
            md5.update(&piece);
            checksums.update(&piece);
            bytes.extend_from_slice(&piece);
        }
    }
    if length.is_some_and(|length| length != bytes.len() as u64) {
        return Err(s3_error!(IncompleteBody));
    }
    let md5 = md5.finalize();
    if let Some(expected) = headers.get("content-md5")
        && expected.as_bytes() != base64(md5.as_ref()).as_bytes()
    {
        return Err(bad_digest());
    }
    check(checksums, headers, trailers)?;
    Ok(Received {
        bytes: bytes.freeze(),
        etag: hex(md5.as_ref()),
    })
}

/// A hasher for each algorithm of which a digest is here or announced to follow.
fn hasher(headers: &HeaderMap) -> ChecksumHasher {
    let trailer = headers
        .get("x-amz-trailer")
        .and_then(|value| value.to_str().ok())
        .unwrap_or("");
    let wanted = |name: &str| {
        headers.contains_key(name)
            || trailer
                .split(',')
                .any(|t| t.trim().eq_ignore_ascii_case(name))
    };
    ChecksumHasher {
        crc32: wanted(ALGORITHMS[0]).then(Crc32::new),
        crc32c: wanted(ALGORITHMS[1]).then(Crc32c::new),
        crc64nvme: wanted(ALGORITHMS[2]).then(Crc64Nvme::new),
        sha1: wanted(ALGORITHMS[3]).then(Sha1::new),
        sha256: wanted(ALGORITHMS[4]).then(Sha256::new),
    }
}

fn check(
    hasher: ChecksumHasher,
    headers: &HeaderMap,
    trailers: Option<&TrailingHeaders>,
) -> S3Result<()> {
    let seen = hasher.finalize();
    let seen = [
        seen.checksum_crc32,
        seen.checksum_crc32c,
        seen.checksum_crc64nvme,
        seen.checksum_sha1,
        seen.checksum_sha256,
    ];
    for (name, seen) in ALGORITHMS.iter().zip(seen) {
        let Some(seen) = seen else { continue };
        let in_trailers =
            trailers.and_then(|trailers| trailers.read(|map| map.get(*name).cloned()).flatten());
        if let Some(expected) = headers.get(*name).cloned().or(in_trailers)
            && expected.as_bytes() != seen.as_bytes()
        {
            return Err(bad_digest());
        }
    }
    Ok(())
}

fn bad_digest() -> S3Error {
    s3_error!(
        BadDigest,
        "The digest you specified did not match what we received."
    )
}

/// The types behind these errors are private to `s3s`; their names are all there is to go by.
fn broken(error: &StdError) -> S3Error {
    let text = error.to_string();
    if text.contains("Sha256Mismatch") {
        let code = S3ErrorCode::Custom("XAmzContentSHA256Mismatch".into());
        let mut error = S3Error::with_message(
            code,
            "The provided 'x-amz-content-sha256' header does not match what was computed.",
        );
        error.set_status_code(http::StatusCode::BAD_REQUEST);
        error
    } else if text.contains("SignatureMismatch") {
        s3_error!(SignatureDoesNotMatch)
    } else {
        s3_error!(IncompleteBody, "The request body ended early")
    }
}
