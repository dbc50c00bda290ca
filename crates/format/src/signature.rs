//! Signatures of metadata changes: how a writer whose answer was lost finds out what became of it.
//!
//! Metadata changes by conditional writes. If the answer to one is lost, the repetition is told
//! that the object changed, perhaps by the first try itself, and perhaps somebody else has changed
//! it again since. So every change signs: a line of 64 blanks and tabs, which mean nothing in JSON,
//! after the metadata. The lines of the last [`KEPT`] changes stay, so a writer that finds its own
//! knows that its change took effect. Without this, two writers that append equally much would
//! write the same bytes and could both claim one range, or one of them would claim twice.

use bytes::Bytes;

/// Signatures of so many changes are kept.
const KEPT: usize = 16;
const BITS: usize = 64;

/// The line that says that the array has replicas (design note 012).
const REPLICATED: Signature = Signature(0x6879_7065_7273_6c62);

/// The mark of one change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signature(u64);

impl Signature {
    pub(crate) fn random() -> Self {
        Signature(rand::random())
    }

    fn line(self) -> impl Iterator<Item = u8> {
        let blank = move |i: usize| {
            if (self.0 >> i) & 1 == 0 { b' ' } else { b'\t' }
        };
        (0..BITS).map(blank).chain([b'\n'])
    }

    fn parse(line: &[u8]) -> Option<Self> {
        if line.len() != BITS {
            return None;
        }
        let mut bits = 0;
        for (i, byte) in line.iter().enumerate() {
            match byte {
                b' ' => {}
                b'\t' => bits |= 1 << i,
                _ => return None,
            }
        }
        Some(Signature(bits))
    }
}

/// The signatures after a JSON text, newest first.
pub(crate) fn read(text: &[u8]) -> Vec<Signature> {
    let end = text
        .iter()
        .rposition(|b| !b.is_ascii_whitespace())
        .map_or(0, |i| i + 1);
    text[end..]
        .split(|b| *b == b'\n')
        .filter_map(Signature::parse)
        .filter(|signature| *signature != REPLICATED)
        .take(KEPT)
        .collect()
}

/// True if a JSON text is followed by the line that says that the array has replicas.
pub(crate) fn is_replicated(text: &[u8]) -> bool {
    let mut lines = text.rsplit(|b| *b == b'\n');
    let blank = |line: &&[u8]| line.iter().all(u8::is_ascii_whitespace);
    lines
        .by_ref()
        .take_while(blank)
        .any(|line| Signature::parse(line) == Some(REPLICATED))
}

/// What follows the JSON text of a change by `mine` to metadata signed by `before`.
pub(crate) fn render(mine: Signature, before: &[Signature], replicated: bool) -> Bytes {
    let kept = before.iter().copied().take(KEPT - 1);
    let flag = replicated.then_some(REPLICATED);
    let lines = flag.into_iter().chain([mine]).chain(kept);
    let tail = lines.flat_map(Signature::line);
    std::iter::once(b'\n').chain(tail).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_signatures_are_kept_and_mean_nothing_to_json() {
        let mut text = b"{\"a\": \"  \"}".to_vec();
        let mut all = Vec::new();
        for _ in 0..KEPT + 3 {
            let mine = Signature::random();
            let before = read(&text);
            assert_eq!(before[..], all[..all.len().min(KEPT)]);
            all.insert(0, mine);
            text = [
                &b"{\"a\": \"  \"}"[..],
                &render(mine, &before, all.len() % 2 == 0),
            ]
            .concat();
            assert_eq!(is_replicated(&text), all.len() % 2 == 0);
            let json: serde_json::Value = serde_json::from_slice(&text).unwrap();
            assert_eq!(json["a"], "  ");
        }
        assert_eq!(read(&text), all[..KEPT]);
        assert_eq!(read(b""), []);
        assert_eq!(read(b"{}\n\n  \t\n"), []);
    }
}
