//! Datasets whose elements are texts of any length.
//!
//! Their chunks that wait to be written hold, in place of cells, the numbers of texts that are kept
//! beside them, so that chunks are changed and put together as those of any other dataset.

use bytes::Bytes;
use hyperslab::{Error, Region, Result, Selection, block_on};

use super::Dataset;
use super::changed::pasted;
use super::dataset::State;

/// Bytes of the number of a text.
const NUMBER: usize = 8;
/// The number of no text: its cell is where it was.
const ELSEWHERE: u64 = u64::MAX;

/// Texts of chunks that wait to be written, by number.
#[derive(Debug)]
pub(super) struct Texts {
    /// The first one is the fill value.
    texts: Vec<Bytes>,
    bytes: u64,
}

impl Texts {
    /// The number of the fill value, as a cell has it.
    pub(super) const FILL: [u8; NUMBER] = [0; NUMBER];

    pub(super) fn new(fill: &[u8]) -> Self {
        Texts {
            texts: vec![Bytes::copy_from_slice(fill)],
            bytes: 0,
        }
    }

    /// Bytes of all texts.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Forgets all but the fill value.
    pub(super) fn clear(&mut self) {
        self.texts.truncate(1);
        self.bytes = 0;
    }

    /// Keeps texts; returns their numbers, as cells have them.
    fn keep(&mut self, texts: Vec<Bytes>) -> Vec<u8> {
        let first = self.texts.len() as u64;
        let numbers = (first..first + texts.len() as u64).flat_map(u64::to_le_bytes);
        let numbers = numbers.collect();
        self.bytes += texts.iter().map(|text| text.len() as u64).sum::<u64>();
        self.texts.extend(texts);
        numbers
    }

    /// The text of a number; `None` if it is elsewhere.
    fn get(&self, number: u64) -> Option<&Bytes> {
        self.texts.get(usize::try_from(number).ok()?)
    }

    /// The texts whose numbers are in these cells.
    pub(super) fn of(&self, cells: &[u8]) -> Vec<Bytes> {
        let each = numbers(cells).map(|number| self.get(number).cloned().unwrap_or_default());
        each.collect()
    }
}

fn numbers(cells: &[u8]) -> impl Iterator<Item = u64> {
    cells.chunks_exact(NUMBER).map(|bytes| {
        let mut number = [0; NUMBER];
        number.copy_from_slice(bytes);
        u64::from_le_bytes(number)
    })
}

impl Dataset {
    /// Reads texts.
    pub(crate) fn read_texts(&self, selection: &Selection) -> Result<Vec<Bytes>> {
        let state = self.lock();
        let cells = selection.num_cells(&state.meta.shape) as usize;
        if state.array.is_some() && !state.has_all(selection) {
            return self.read_texts_through(&state, selection, cells);
        }
        let stored = match &state.array {
            // Nothing of the array would be seen.
            Some(_) if !state.changed.is_empty() && state.changed.covers(selection)? => None,
            array => array.clone(),
        };
        let mut texts = match stored {
            Some(array) => block_on(array.read_strings(&state.explicit(selection)))?,
            None => vec![state.texts.get(0).cloned().unwrap_or_default(); cells],
        };
        if texts.len() != cells {
            return Err(Error::internal(
                "another number of texts was read than asked for",
            ));
        }
        let mut changed: Vec<u8> = ELSEWHERE.to_le_bytes().repeat(cells);
        state.changed.overlay(selection, &mut changed)?;
        for (text, number) in texts.iter_mut().zip(numbers(&changed)) {
            if let Some(new) = state.texts.get(number) {
                text.clone_from(new);
            }
        }
        Ok(texts)
    }

    /// Reads texts chunk by chunk, because the array has not the shape of the dataset.
    fn read_texts_through(
        &self,
        state: &State,
        selection: &Selection,
        cells: usize,
    ) -> Result<Vec<Bytes>> {
        // Texts of the array have numbers of their own, from this one on.
        const STORED: u64 = 1 << 63;
        let mut stored: Vec<Bytes> = Vec::new();
        let mut seen = vec![0; cells * NUMBER];
        state.changed.read_through(selection, &mut seen, |region| {
            load(state, region, |texts| {
                let first = STORED + stored.len() as u64;
                let numbers = (first..first + texts.len() as u64).flat_map(u64::to_le_bytes);
                let numbers = numbers.collect();
                stored.extend(texts);
                numbers
            })
        })?;
        let text = |number: u64| match number.checked_sub(STORED) {
            Some(at) => stored.get(at as usize),
            None => state.texts.get(number),
        };
        let texts = numbers(&seen).map(|number| text(number).cloned().unwrap_or_default());
        Ok(texts.collect())
    }

    /// Changes texts; they are written later.
    pub(crate) fn write_texts(&self, selection: &Selection, texts: Vec<Bytes>) -> Result<()> {
        self.check_own()?;
        let mut state = self.lock();
        let mut changed = state.changed.taken();
        let mut kept = std::mem::replace(&mut state.texts, Texts::new(&[]));
        let cells = kept.keep(texts);
        let written = changed.write(selection, &cells, |region| {
            load(&state, region, |texts| kept.keep(texts))
        });
        (state.changed, state.texts) = (changed, kept);
        written
    }
}

/// The numbers of the texts of a box that are in the array, which `keep` gives them, with that of the
/// fill value where others are; `None` if there are none.
fn load(
    state: &State,
    region: &Region,
    keep: impl FnOnce(Vec<Bytes>) -> Vec<u8>,
) -> Result<Option<Vec<u8>>> {
    let (Some(array), Some(inside)) = (&state.array, state.stored_part(region)) else {
        return Ok(None);
    };
    let texts = block_on(array.read_strings(&Selection::region(&inside)))?;
    pasted(region, &inside, &keep(texts), &Texts::FILL).map(Some)
}
