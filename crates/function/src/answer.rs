//! The body of an answer: a preamble that says what follows, and the bytes that were asked for.
//!
//! An answer is streamed through gateways that may cut it, replace it by a page of their own with
//! status 200, or answer from a cache. Invariant: [`Answer::parse`] returns the bytes that the
//! function sent, all of them, or an error.

use bytes::{Buf, BufMut, Bytes};
use hyperslab_index::{Error, Result};

/// Bytes before the payload: magic, version, length, checksum, four bytes in reserve.
pub const PREAMBLE_BYTES: usize = 24;

const MAGIC: [u8; 4] = *b"HSLB";

/// The body of an answer.
#[derive(Debug)]
pub struct Answer;

impl Answer {
    /// Writes the preamble of `payload` into the first [`PREAMBLE_BYTES`] of the body.
    pub(crate) fn preamble(payload: &[u8]) -> [u8; PREAMBLE_BYTES] {
        let mut bytes = [0; PREAMBLE_BYTES];
        let mut out = &mut bytes[..];
        out.put_slice(&MAGIC);
        out.put_u32_le(crate::VERSION);
        out.put_u64_le(payload.len() as u64);
        out.put_u32_le(crc32c::crc32c(payload));
        bytes
    }

    /// The payload of a body that should hold `expected` bytes of it.
    pub fn parse(mut body: Bytes, expected: u64) -> Result<Bytes> {
        if body.len() < PREAMBLE_BYTES || body[..4] != MAGIC {
            return Err(match looks_like_a_page(&body) {
                true => Error::unavailable("the function's address answered with a web page")
                    .with_hint(
                        "check the function's URL; a gateway or a login may stand before it",
                    ),
                false if MAGIC.starts_with(&body[..body.len().min(4)]) => {
                    Error::unavailable(format!(
                        "the function's answer ended after {} bytes, before its preamble",
                        body.len()
                    ))
                }
                false => Error::unavailable("the answer does not come from a hyperslab function")
                    .with_hint("check the function's URL"),
            });
        }
        body.advance(4);
        let version = body.get_u32_le();
        let length = body.get_u64_le();
        let checksum = body.get_u32_le();
        body.advance(4);
        if version != crate::VERSION {
            return Err(Error::unavailable(format!(
                "the function's answer has version {version}, but this client speaks version {}",
                crate::VERSION
            ))
            .with_hint("deploy the function that came with the client"));
        }
        if length != expected {
            return Err(Error::unavailable(format!(
                "the function's answer holds {length} bytes, but {expected} were asked for"
            )));
        }
        let got = body.len() as u64;
        if got < length {
            return Err(Error::unavailable(format!(
                "the function's answer ended after {got} of {length} bytes"
            )));
        }
        if got > length {
            return Err(Error::unavailable(format!(
                "the function's answer goes on after its {length} bytes"
            )));
        }
        if crc32c::crc32c(&body) != checksum {
            return Err(Error::unavailable(
                "the function's answer does not match its checksum",
            ));
        }
        Ok(body)
    }
}

fn looks_like_a_page(body: &[u8]) -> bool {
    let start = body.trim_ascii_start();
    start.first() == Some(&b'<')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(payload: &[u8]) -> Vec<u8> {
        [&Answer::preamble(payload)[..], payload].concat()
    }

    #[test]
    fn what_was_sent_is_what_arrives() {
        for payload in [&b""[..], b"x", &[7; 1000]] {
            let parsed = Answer::parse(body(payload).into(), payload.len() as u64).unwrap();
            assert_eq!(parsed, payload);
        }
    }

    #[test]
    fn everything_else_is_told_apart() {
        let whole = body(b"0123456789");
        let flipped = |at: usize| {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            bytes
        };
        let longer = [&whole[..], b"x"].concat();
        let page = b"\n <!DOCTYPE html><html><body>Bad gateway</body></html>".to_vec();
        for (bytes, word) in [
            (whole[..20].to_vec(), "ended after 20 bytes"),
            (whole[..2].to_vec(), "before its preamble"),
            (Vec::new(), "before its preamble"),
            (whole[..30].to_vec(), "ended after 6 of 10"),
            (longer, "goes on after"),
            (flipped(0), "does not come from"),
            (flipped(4), "version"),
            (flipped(8), "were asked for"),
            (flipped(16), "checksum"),
            (flipped(33), "checksum"),
            (page, "web page"),
            (
                b"{\"message\": \"hello from a proxy\"}".to_vec(),
                "does not come from",
            ),
        ] {
            let error = Answer::parse(bytes.into(), 10).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Unavailable);
            assert!(error.message().contains(word), "{error} lacks {word:?}");
        }
        let error = Answer::parse(whole.into(), 11).unwrap_err();
        assert!(error.message().contains("11 were asked for"), "{error}");
    }
}
