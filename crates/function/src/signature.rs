//! Signatures of requests: who may call the function, and until when.
//!
//! The header is `v1;expires=UNIX;hmac=HEX`, where the HMAC-SHA256 is over
//! `v1\n{expires}\n{SHA-256 of the body in hex}`. The secret itself never travels. The clock is an
//! argument, so that tests need no waiting.
//!
//! Invariant: a signature is good for one body only, and for an hour at most.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use hyperslab_index::{Error, Result};
use sha2::{Digest, Sha256};

/// The header that carries the signature.
pub const SIGNATURE_HEADER: &str = "x-hyperslab-signature";

/// Seconds that a signature may be valid at most: one that leaks is soon worthless.
pub const LONGEST_VALIDITY: u64 = 3600;

/// A secret shorter than this can be guessed.
const SHORTEST_SECRET: usize = 16;

/// What client and function both know.
#[derive(Clone)]
pub struct Secret(Hmac<Sha256>);

impl Secret {
    /// Makes a secret of at least 16 bytes.
    pub fn new(bytes: impl AsRef<[u8]>) -> Result<Self> {
        let bytes = bytes.as_ref();
        if bytes.len() < SHORTEST_SECRET {
            return Err(Error::invalid(format!(
                "the function's secret has {} bytes, but needs {SHORTEST_SECRET}",
                bytes.len()
            ))
            .with_hint("make one with: openssl rand -hex 32"));
        }
        Hmac::new_from_slice(bytes)
            .map(Secret)
            .map_err(|e| Error::internal("HMAC refuses a key").with_source(e))
    }

    fn mac(&self, body: &[u8], expires: u64) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        mac.update(format!("v1\n{expires}\n{}", hex(&Sha256::digest(body))).as_bytes());
        mac
    }
}

/// Shows nothing of the secret.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The value of [`SIGNATURE_HEADER`] for a body, valid until `expires_unix`.
pub fn sign(secret: &Secret, body: &[u8], expires_unix: u64) -> String {
    let tag = secret.mac(body, expires_unix).finalize().into_bytes();
    format!("v1;expires={expires_unix};hmac={}", hex(&tag))
}

/// Checks the value of [`SIGNATURE_HEADER`] at the time `now_unix`.
pub fn verify(secret: &Secret, body: &[u8], header: Option<&str>, now_unix: u64) -> Result<()> {
    let Some(header) = header else {
        return Err(Error::denied("the request is not signed")
            .with_hint("give the client the function's secret"));
    };
    let malformed = || Error::denied("the request's signature is malformed");
    let (expires, tag) = header
        .strip_prefix("v1;expires=")
        .and_then(|rest| rest.split_once(";hmac="))
        .ok_or_else(malformed)?;
    let canonical = expires.bytes().all(|b| b.is_ascii_digit()) && !expires.starts_with('0');
    let expires: u64 = expires
        .parse()
        .ok()
        .filter(|_| canonical)
        .ok_or_else(malformed)?;
    let tag = unhex(tag).ok_or_else(malformed)?;
    // Compares in constant time. Before the times, so that a stranger learns nothing of our clock.
    secret.mac(body, expires).verify_slice(&tag).map_err(|_| {
        Error::denied("the request's signature is wrong")
            .with_hint("check that client and function have the same secret")
    })?;
    if expires <= now_unix {
        return Err(Error::denied("the request's signature has expired")
            .with_hint("check the clock of the client"));
    }
    if expires - now_unix > LONGEST_VALIDITY {
        return Err(Error::denied(format!(
            "the request's signature is valid for more than {LONGEST_VALIDITY} seconds"
        ))
        .with_hint("sign for a shorter time, or check the clock of the client"));
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Lower-case hex only: one signature has one spelling.
fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |b: u8| match b {
        b'0'..=b'9' => Some(b - b'0'),
        b'a'..=b'f' => Some(b - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs
        .iter()
        .map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn secret() -> Secret {
        Secret::new("a secret of enough bytes").unwrap()
    }

    #[test]
    fn the_form_is_fixed() {
        // Computed with Python's hmac and hashlib.
        assert_eq!(
            sign(&Secret::new("0123456789abcdef").unwrap(), b"{}", NOW),
            "v1;expires=1800000000;hmac=804f446bf2fcf199d6535af06addb740088d747c9c417dac8ec56e24234d6b25"
        );
    }

    #[test]
    fn good_signatures_pass_and_others_say_why_not() {
        let good = sign(&secret(), b"body", NOW + 60);
        verify(&secret(), b"body", Some(&good), NOW).unwrap();
        let refused = |body: &[u8], header: Option<&str>, now| {
            let error = verify(&secret(), body, header, now).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Denied);
            error.message().to_owned()
        };
        assert!(refused(b"body", None, NOW).contains("not signed"));
        assert!(refused(b"other", Some(&good), NOW).contains("wrong"));
        assert!(refused(b"body", Some(&good), NOW + 60).contains("expired"));
        let far = sign(&secret(), b"body", NOW + LONGEST_VALIDITY + 1);
        assert!(refused(b"body", Some(&far), NOW).contains("more than 3600"));
        let foreign = sign(
            &Secret::new("another one, also long").unwrap(),
            b"body",
            NOW + 60,
        );
        assert!(refused(b"body", Some(&foreign), NOW).contains("wrong"));
        let later = good.replace(&(NOW + 60).to_string(), &(NOW + 61).to_string());
        assert!(refused(b"body", Some(&later), NOW).contains("wrong"));
        for malformed in [
            String::new(),
            "v1".into(),
            good.replace("v1", "v2"),
            good.replace("expires=1", "expires=01"),
            good.replace("expires=", "expires=+"),
            good.to_uppercase(),
            good[..good.len() - 1].into(),
        ] {
            assert!(refused(b"body", Some(&malformed), NOW).contains("malformed"));
        }
        let short = &good[..good.len() - 2];
        assert!(refused(b"body", Some(short), NOW).contains("wrong"));
    }

    #[test]
    fn short_secrets_are_refused_and_none_is_shown() {
        assert!(Secret::new("short").is_err());
        assert_eq!(format!("{:?}", secret()), "Secret(…)");
    }
}
