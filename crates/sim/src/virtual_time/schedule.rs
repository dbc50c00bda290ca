//! Things that are due, by when: a heap that hands out the earliest, and of equals the oldest.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// What is due, the earliest first.
#[derive(Debug)]
pub(super) struct Schedule<T> {
    heap: BinaryHeap<Entry<T>>,
    added: u64,
}

#[derive(Debug)]
struct Entry<T> {
    at: f64,
    number: u64,
    what: T,
}

impl<T> Default for Schedule<T> {
    fn default() -> Self {
        Schedule {
            heap: BinaryHeap::new(),
            added: 0,
        }
    }
}

impl<T> Schedule<T> {
    pub(super) fn add(&mut self, at: f64, what: T) {
        let number = self.added;
        self.added += 1;
        self.heap.push(Entry { at, number, what });
    }

    /// When the first is due.
    pub(super) fn next_at(&self) -> Option<f64> {
        self.heap.peek().map(|entry| entry.at)
    }

    /// Takes the first, with the moment at which it is due.
    pub(super) fn take(&mut self) -> Option<(f64, T)> {
        self.heap.pop().map(|entry| (entry.at, entry.what))
    }

    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

/// The greatest entry is the one that is due first: the heap hands out the greatest.
impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        other
            .at
            .total_cmp(&self.at)
            .then(other.number.cmp(&self.number))
    }
}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Entry<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_comes_first_and_of_equals_the_oldest() {
        let mut schedule = Schedule::default();
        for (at, what) in [(2.0, 'c'), (1.0, 'a'), (2.0, 'd'), (1.0, 'b')] {
            schedule.add(at, what);
        }
        assert_eq!((schedule.len(), schedule.next_at()), (4, Some(1.0)));
        let order: String = std::iter::from_fn(|| schedule.take().map(|(_, what)| what)).collect();
        assert_eq!(order, "abcd");
        assert!(schedule.is_empty());
    }
}
