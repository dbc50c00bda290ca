//! From numbers to places on an axis, and the round numbers beside it.

/// One axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    doubling: bool,
    /// Where numbers stand, ascending.
    pub(crate) ticks: Vec<f64>,
}

impl Scale {
    /// An even axis between two numbers.
    pub(crate) fn even(low: f64, high: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        let step = round_step((high - low) / 5.0);
        let first = (low / step).ceil() as i64;
        let last = (high / step + 1e-9).floor() as i64;
        Scale {
            low,
            high,
            doubling: false,
            ticks: (first..=last).map(|n| n as f64 * step).collect(),
        }
    }

    /// An even axis from 0 to a round number that is not below `most`.
    pub(crate) fn from_zero(most: f64) -> Self {
        let most = if most.is_finite() && most > 0.0 {
            most
        } else {
            1.0
        };
        let step = round_step(most / 5.0);
        Self::even(0.0, (most / step - 1e-9).ceil() * step)
    }

    /// An axis on which every doubling is as long as the one before.
    pub(crate) fn doubling(low: f64, high: f64) -> Self {
        let mut ticks = vec![low];
        let mut tick = 2.0 * low;
        while tick <= high * (1.0 + 1e-9) {
            ticks.push(tick);
            tick *= 2.0;
        }
        Scale {
            low,
            high,
            doubling: true,
            ticks,
        }
    }

    /// The place of a number: 0 at the low end, 1 at the high end, and never outside.
    pub(crate) fn place(&self, number: f64) -> f64 {
        let share = if self.doubling {
            (number / self.low).ln() / (self.high / self.low).ln()
        } else {
            (number - self.low) / (self.high - self.low)
        };
        if share.is_finite() {
            share.clamp(0.0, 1.0)
        } else {
            0.0
        }
    }

    /// A tick's number as text, with as many digits as tell it from its neighbours.
    pub(crate) fn label(&self, tick: f64) -> String {
        let step = match self.ticks.as_slice() {
            [first, second, ..] => second - first,
            _ => 1.0,
        };
        let decimals = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
        format!("{tick:.decimals$}")
    }
}

/// The next 1, 2 or 5 times a power of ten that is not below `least`.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= least * (1.0 - 1e-9))
        .unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_cover_the_axis() {
        let scale = Scale::from_zero(108.0);
        assert_eq!(scale.ticks, [0.0, 50.0, 100.0, 150.0]);
        assert_eq!(scale.label(50.0), "50");
        let small = Scale::from_zero(0.031);
        assert_eq!(small.label(small.ticks[1]), "0.01");
        assert_eq!(Scale::doubling(1.0, 8.0).ticks, [1.0, 2.0, 4.0, 8.0]);
        assert_eq!(Scale::even(0.0, 64.0).ticks, [0.0, 20.0, 40.0, 60.0]);
    }

    #[test]
    fn places_are_between_the_ends() {
        let scale = Scale::doubling(1.0, 256.0);
        assert!((scale.place(16.0) - 0.5).abs() < 1e-12);
        assert_eq!(scale.place(0.0), 0.0);
        assert_eq!(scale.place(1e9), 1.0);
        assert_eq!(Scale::from_zero(10.0).place(5.0), 0.5);
        for odd in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(!Scale::from_zero(odd).ticks.is_empty());
            assert!((0.0..=1.0).contains(&Scale::from_zero(3.0).place(odd)));
        }
    }
}
