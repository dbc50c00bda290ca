//! Percent and hexadecimal notation, as URLs, listings and ETags use them.

use std::fmt::Write as _;

/// Decodes `%XX` escapes; anything that is not a valid escape or not UTF-8 gives `None`.
pub(crate) fn percent_decode(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'%' {
            let digits = bytes.get(at + 1..at + 3)?;
            out.push(hex_digit(digits[0])? << 4 | hex_digit(digits[1])?);
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8(out).ok()
}

/// Encodes all but unreserved characters and `/`, as S3 does for `encoding-type=url`.
pub(crate) fn percent_encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for &byte in text.as_bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(out, "{byte:02x}");
    }
    out
}

/// The bytes of lower- or upper-case hexadecimal digits.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let bytes = text.as_bytes();
    if !bytes.len().is_multiple_of(2) {
        return None;
    }
    bytes
        .chunks_exact(2)
        .map(|pair| Some(hex_digit(pair[0])? << 4 | hex_digit(pair[1])?))
        .collect()
}

/// Standard base64 with padding.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            if digit <= group.len() {
                let value = (bits >> (18 - 6 * digit)) & 63;
                out.push(char::from(DIGITS[value as usize]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

/// Whether `text` matches `pattern`, where `*` stands for any run of characters, `/` included.
pub(crate) fn glob_matches(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else {
        return rest.is_empty();
    };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_round_trip() {
        let key = "a b/ü+%&c.txt~";
        assert_eq!(percent_encode(key), "a%20b/%C3%BC%2B%25%26c.txt~");
        assert_eq!(percent_decode(&percent_encode(key)).as_deref(), Some(key));
        assert_eq!(percent_decode("%4"), None);
        assert_eq!(percent_decode("%zz"), None);
        assert_eq!(percent_decode("%ff"), None, "not UTF-8");
    }

    #[test]
    fn hex_round_trip() {
        assert_eq!(
            unhex(&hex(b"\x00\xffkey")).as_deref(),
            Some(&b"\x00\xffkey"[..])
        );
        assert_eq!(unhex("abc"), None);
    }

    #[test]
    fn base64_follows_rfc_4648() {
        let cases = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, encoded) in cases {
            assert_eq!(base64(plain.as_bytes()), encoded);
        }
        assert_eq!(base64(&[0xff, 0xef, 0xfe]), "/+/+");
    }

    #[test]
    fn globs_agree_with_a_naive_matcher() {
        fn naive(pattern: &[u8], text: &[u8]) -> bool {
            match pattern.split_first() {
                None => text.is_empty(),
                Some((b'*', rest)) => (0..=text.len()).any(|at| naive(rest, &text[at..])),
                Some((byte, rest)) => text.first() == Some(byte) && naive(rest, &text[1..]),
            }
        }
        let alphabet = ["", "a", "b", "*"];
        let mut patterns = vec![String::new()];
        for _ in 0..5 {
            patterns = patterns
                .iter()
                .flat_map(|p| alphabet.iter().map(move |piece| format!("{p}{piece}")))
                .collect();
            patterns.sort();
            patterns.dedup();
        }
        for pattern in &patterns {
            for text in patterns.iter().filter(|t| !t.contains('*')) {
                let expected = naive(pattern.as_bytes(), text.as_bytes());
                assert_eq!(
                    glob_matches(pattern, text),
                    expected,
                    "{pattern} against {text}"
                );
            }
        }
    }
}
