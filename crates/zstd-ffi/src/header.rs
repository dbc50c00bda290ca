//! What stands in front of a frame and of a block (RFC 8878, sections 3.1.1.1 and 3.1.1.2).

/// The header of a frame without checksum and dictionary.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) header_len: usize,
    /// Decoded bytes, if the frame says.
    pub(crate) content: Option<u64>,
}

impl Frame {
    const SIGNATURE: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

    /// `None` for all else: other frames, and what is too short.
    pub(crate) fn parse(data: &[u8]) -> Option<Self> {
        let (flags, rest) = data.strip_prefix(&Self::SIGNATURE)?.split_first()?;
        let single_segment = flags & 0x20 != 0;
        let reserved_checksum_or_dictionary = flags & 0b1111 != 0;
        if reserved_checksum_or_dictionary {
            return None;
        }
        let window = usize::from(!single_segment);
        let size_len = match flags >> 6 {
            0 => usize::from(single_segment),
            code => 1 << code,
        };
        let mut stated = [0; 8];
        stated[..size_len].copy_from_slice(rest.get(window..window + size_len)?);
        // Sizes of two bytes start behind those of one.
        let extra = if size_len == 2 { 256 } else { 0 };
        Some(Frame {
            header_len: Self::SIGNATURE.len() + 1 + window + size_len,
            content: (size_len > 0).then(|| u64::from_le_bytes(stated).saturating_add(extra)),
        })
    }
}

/// How the body of a block is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Raw,
    Repeated,
    Compressed,
}

/// The header of a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    pub(crate) last: bool,
    pub(crate) kind: Kind,
    /// Stored bytes of a compressed block, decoded bytes of the others.
    pub(crate) size: usize,
}

impl Block {
    pub(crate) const HEADER: usize = 3;
    /// More no block has, decoded or not.
    const MAX: usize = 128 << 10;

    pub(crate) fn parse(data: &[u8]) -> Option<Self> {
        let [a, b, c] = *data.first_chunk::<{ Self::HEADER }>()?;
        let word = u32::from_le_bytes([a, b, c, 0]);
        let kind = match word >> 1 & 0b11 {
            0 => Kind::Raw,
            1 => Kind::Repeated,
            2 => Kind::Compressed,
            _ => return None,
        };
        let size = (word >> 3) as usize;
        (size <= Self::MAX).then_some(Block {
            last: word & 1 != 0,
            kind,
            size,
        })
    }

    /// Bytes of its body.
    pub(crate) fn stored(self) -> usize {
        match self.kind {
            Kind::Repeated => 1,
            Kind::Raw | Kind::Compressed => self.size,
        }
    }
}
