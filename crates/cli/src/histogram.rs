//! A histogram drawn in text bars.

use crate::size;

/// At most so many bars.
const BARS: u64 = 8;
/// The longest bar, in characters.
const WIDTH: u64 = 40;

/// Bins of equal width over the values: (from, to, how many), both ends inclusive.
pub(crate) fn bins(values: &[u64]) -> Vec<(u64, u64, u64)> {
    let (Some(&low), Some(&high)) = (values.iter().min(), values.iter().max()) else {
        return Vec::new();
    };
    let step = ((high - low) / BARS + 1).max(1);
    let many = (high - low) / step + 1;
    let mut bins: Vec<(u64, u64, u64)> = (0..many)
        .map(|bin| {
            let from = low + bin * step;
            (from, from.saturating_add(step - 1).min(high), 0)
        })
        .collect();
    for value in values {
        bins[((value - low) / step) as usize].2 += 1;
    }
    bins
}

/// One line per bin; a bin that is not empty has at least a sliver of a bar.
pub(crate) fn draw(values: &[u64]) -> Vec<String> {
    let bins = bins(values);
    let most = bins.iter().map(|bin| bin.2).max().unwrap_or(0).max(1);
    let labels: Vec<String> = bins
        .iter()
        .map(|(from, to, _)| match from == to {
            true => size::show(*from),
            false => format!("{} – {}", size::show(*from), size::show(*to)),
        })
        .collect();
    let wide = labels
        .iter()
        .map(|label| label.chars().count())
        .max()
        .unwrap_or(0);
    bins.iter()
        .zip(labels)
        .map(|((_, _, many), label)| {
            let bar = match many * WIDTH / most {
                0 if *many > 0 => "▏ ".to_owned(),
                0 => String::new(),
                cells => "█".repeat(cells as usize) + " ",
            };
            let pad = " ".repeat(wide - label.chars().count());
            format!("{pad}{label}  {bar}{}", size::count(*many))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_one_bin() {
        for values in [
            vec![5],
            vec![7; 9],
            vec![0, u64::MAX],
            (0..1000).collect(),
            vec![10, 17, 18],
        ] {
            let bins = bins(&values);
            assert!(bins.len() as u64 <= BARS + 1);
            assert_eq!(
                bins.iter().map(|bin| bin.2).sum::<u64>(),
                values.len() as u64
            );
            for (from, to, many) in bins {
                let inside = values.iter().filter(|v| (from..=to).contains(*v)).count();
                assert_eq!(inside as u64, many);
            }
        }
        assert!(draw(&[]).is_empty());
        assert_eq!(
            draw(&[1024; 3]),
            [format!("1.00 KiB  {} 3", "█".repeat(40))]
        );
    }
}
