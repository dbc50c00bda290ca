//! A perceptually even colour map from dark violet over green to yellow: viridis, by its values at
//! sixteen even steps and straight lines between them.

const STEPS: [[u8; 3]; 17] = [
    [68, 1, 84],
    [72, 24, 106],
    [71, 45, 123],
    [66, 64, 134],
    [59, 82, 139],
    [51, 99, 141],
    [44, 114, 142],
    [38, 130, 142],
    [33, 145, 140],
    [31, 160, 136],
    [40, 174, 128],
    [63, 188, 115],
    [94, 201, 98],
    [132, 212, 75],
    [173, 220, 48],
    [216, 226, 25],
    [253, 231, 37],
];

/// The colour at a place between 0 and 1.
pub(crate) fn viridis(place: f64) -> [u8; 3] {
    let last = STEPS.len() - 1;
    let at = place.clamp(0.0, 1.0) * last as f64;
    let step = (at as usize).min(last - 1);
    let part = at - step as f64;
    std::array::from_fn(|channel| {
        let (from, to) = (
            f64::from(STEPS[step][channel]),
            f64::from(STEPS[step + 1][channel]),
        );
        (from + (to - from) * part).round() as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_and_steps_are_exact_and_brightness_rises() {
        assert_eq!(viridis(0.0), STEPS[0]);
        assert_eq!(viridis(1.0), STEPS[16]);
        assert_eq!(viridis(0.25), STEPS[4]);
        let light =
            |c: [u8; 3]| 299 * u32::from(c[0]) + 587 * u32::from(c[1]) + 114 * u32::from(c[2]);
        let lights: Vec<u32> = (0..=100)
            .map(|i| light(viridis(f64::from(i) / 100.0)))
            .collect();
        assert!(lights.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
