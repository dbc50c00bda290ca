//! Many numbers of bytes as few classes of nearly equal ones, so that a million of them can be
//! weighed again and again.
//!
//! Up to a few thousand numbers, however often each comes in a row, are kept exactly; of more, those
//! that agree in their first six binary digits are one class.

/// So many numbers are kept as they are.
const EXACT: usize = 4096;
/// Binary digits, after the first, by which classes differ.
const DIGITS: u32 = 5;
/// Numbers below this are classes of their own.
const SMALL: u64 = 2 << DIGITS;
/// Classes of all numbers of 64 bits.
const CLASSES: usize = (SMALL + (63 - DIGITS as u64) * (1 << DIGITS)) as usize;

/// Nearly equal numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Class {
    /// How many.
    pub(super) count: u64,
    /// Their sum.
    pub(super) sum: u64,
    /// The largest.
    pub(super) most: u64,
}

impl Class {
    fn add(&mut self, number: u64, times: u64) {
        self.count += times;
        self.sum += number * times;
        self.most = self.most.max(number);
    }
}

/// Numbers that are being counted.
#[derive(Debug, Default)]
pub(super) struct Lengths {
    /// The number that came last, and how often in a row: most boxes have equal rows.
    last: (u64, u64),
    /// Numbers, and how often each came in a row.
    exact: Vec<(u64, u64)>,
    /// Empty as long as all numbers are kept.
    classes: Vec<Class>,
}

impl Lengths {
    pub(super) fn push(&mut self, number: u64) {
        if number == self.last.0 {
            self.last.1 += 1;
            return;
        }
        self.keep();
        self.last = (number, 1);
    }

    /// Counts the numbers that came last.
    fn keep(&mut self) {
        let (number, times) = self.last;
        if times == 0 {
            return;
        }
        if !self.classes.is_empty() {
            self.classes[class_of(number)].add(number, times);
            return;
        }
        self.exact.push((number, times));
        if self.exact.len() > EXACT {
            self.classes = vec![Class::default(); CLASSES];
            for (number, times) in std::mem::take(&mut self.exact) {
                self.classes[class_of(number)].add(number, times);
            }
        }
    }

    /// The classes, smallest numbers first.
    pub(super) fn into_classes(mut self) -> Vec<Class> {
        self.keep();
        if !self.classes.is_empty() {
            self.classes.retain(|class| class.count > 0);
            return self.classes;
        }
        self.exact.sort_unstable();
        let mut classes: Vec<Class> = Vec::new();
        for (number, times) in self.exact {
            match classes.last_mut() {
                Some(last) if last.most == number => last.add(number, times),
                _ => {
                    let mut class = Class::default();
                    class.add(number, times);
                    classes.push(class);
                }
            }
        }
        classes
    }
}

fn class_of(number: u64) -> usize {
    if number < SMALL {
        return number as usize;
    }
    let shift = 63 - number.leading_zeros() - DIGITS;
    let digits = (number >> shift) - (1 << DIGITS);
    (SMALL + u64::from(shift - 1) * (1 << DIGITS) + digits) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn classes_grow_with_their_numbers() {
        assert_eq!(class_of(u64::MAX), CLASSES - 1);
        let numbers: Vec<u64> = (0..64)
            .flat_map(|e| [1u64 << e, (1u64 << e) + (1u64 << e) / 3])
            .collect();
        let mut sorted = numbers.clone();
        sorted.sort_unstable();
        assert!(sorted.windows(2).all(|w| class_of(w[0]) <= class_of(w[1])));
    }

    proptest! {
        #[test]
        fn nothing_is_lost(
            numbers in proptest::collection::vec(0u64..1 << 40, 1..300),
            times in 1usize..60,
        ) {
            let mut lengths = Lengths::default();
            for _ in 0..times {
                numbers.iter().for_each(|n| lengths.push(*n));
            }
            let classes = lengths.into_classes();
            let sum: u64 = numbers.iter().sum();
            prop_assert_eq!(classes.iter().map(|c| c.sum).sum::<u64>(), sum * times as u64);
            prop_assert_eq!(
                classes.iter().map(|c| c.count).sum::<u64>(),
                (numbers.len() * times) as u64
            );
            prop_assert_eq!(classes.last().map(|c| c.most), numbers.iter().max().copied());
            prop_assert!(classes.windows(2).all(|w| w[0].most < w[1].most));
            // Numbers of one class differ by 3 % at most.
            for class in classes {
                let mean = class.sum as f64 / class.count as f64;
                prop_assert!(mean >= class.most as f64 / (1.0 + 1.0 / 32.0) - 1.0);
            }
        }
    }
}
