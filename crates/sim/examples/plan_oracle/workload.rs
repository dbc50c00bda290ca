//! What is asked of which array: the queries of ArrayMorph (2025), section 5, one at a time.
//!
//! Invariant: a query depends on its workload and seed alone, so every layout answers the same one.

use hyperslab_index::{Hyperslab, Region, Result, Selection, Shape};
use hyperslab_plan::oracle::Random;

/// Side of the square array of figure 7, in cells of 4 bytes.
const SIDE: u64 = 16384;
/// One in a hundred rows or columns.
const BAND: u64 = SIDE.div_ceil(100);
/// Rows of one array of a BERT file, and cells of 4 bytes of a row.
const SAMPLES: u64 = 390_000;
const SAMPLE: u64 = 128;
/// Planes, rows and columns of a picture of a camera trap.
const PICTURE: [u64; 3] = [3, 2880, 3840];

/// A kind of query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Workload {
    /// Whole rows of the square array, 1 % of it.
    Horizontal,
    /// Whole columns of the square array, 1 % of it.
    Vertical,
    /// 21 × 21 cells of the square array.
    Small,
    /// 1 % of the rows of 512 bytes, drawn at random.
    Bert,
    /// A box as around an animal, 2.8 MB in the mean.
    Camera,
}

impl Workload {
    pub(crate) const ALL: [Workload; 5] = [
        Workload::Horizontal,
        Workload::Vertical,
        Workload::Small,
        Workload::Bert,
        Workload::Camera,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Workload::Horizontal => "horizontal",
            Workload::Vertical => "vertical",
            Workload::Small => "small",
            Workload::Bert => "bert",
            Workload::Camera => "camera",
        }
    }

    /// Bytes of a cell.
    pub(crate) fn cell(self) -> u64 {
        match self {
            Workload::Camera => 1,
            _ => 4,
        }
    }

    /// The array's shape.
    pub(crate) fn array(self) -> Result<Shape> {
        match self {
            Workload::Bert => Shape::new([SAMPLES, SAMPLE]),
            Workload::Camera => Shape::new(PICTURE),
            _ => Shape::new([SIDE, SIDE]),
        }
    }

    /// The shape of chunks of about so many bytes, and of the inner chunks if they are shards.
    pub(crate) fn chunks(self, bytes: u64) -> Result<(Shape, Shape)> {
        let (chunk, inner) = match self {
            Workload::Bert => {
                let rows = bytes / (4 * SAMPLE);
                let inner = (rows / 16).min(128);
                (vec![rows, SAMPLE], vec![inner, SAMPLE])
            }
            // Half a picture, all planes of it.
            Workload::Camera if bytes > 4 << 20 => {
                let [planes, rows, columns] = PICTURE;
                (vec![planes, rows / 2, columns], vec![1, 240, 256])
            }
            Workload::Camera => {
                let side = bytes.isqrt();
                let inner = (side / 4).min(256);
                (vec![1, side, side], vec![1, inner, inner])
            }
            _ => {
                let side = (bytes / 4).isqrt();
                let inner = (side / 4).min(128);
                (vec![side, side], vec![inner, inner])
            }
        };
        Ok((Shape::new(chunk)?, Shape::new(inner)?))
    }

    /// The query of a seed.
    pub(crate) fn select(self, seed: u64) -> Result<Selection> {
        let mut random = Random::new(seed.wrapping_mul(1 << 32).wrapping_add(self as u64));
        // The first numbers of neighbouring seeds are not far apart.
        random.bits();
        let region = match self {
            Workload::Horizontal => Region::new([random.below(SIDE - BAND + 1), 0], [BAND, SIDE])?,
            Workload::Vertical => Region::new([0, random.below(SIDE - BAND + 1)], [SIDE, BAND])?,
            Workload::Small => {
                let mut start = || random.below(SIDE - 20);
                Region::new([start(), start()], [21, 21])?
            }
            Workload::Bert => return samples(&mut random),
            Workload::Camera => {
                let [planes, rows, columns] = PICTURE;
                let mut side = || 400 + random.below(1141);
                let sides = [side(), side()];
                let start = [
                    random.below(rows - sides[0] + 1),
                    random.below(columns - sides[1] + 1),
                ];
                Region::new([0, start[0], start[1]], [planes, sides[0], sides[1]])?
            }
        };
        Ok(Selection::region(&region))
    }
}

/// One in a hundred rows.
fn samples(random: &mut Random) -> Result<Selection> {
    let mut rows: Vec<u64> = (0..SAMPLES / 100).map(|_| random.below(SAMPLES)).collect();
    rows.sort_unstable();
    rows.dedup();
    let slab = |row: &u64| -> Result<Hyperslab> {
        Ok(Hyperslab::from_region(&Region::new(
            [*row, 0],
            [1, SAMPLE],
        )?))
    };
    Selection::from_hyperslabs(rows.iter().map(slab).collect::<Result<_>>()?)
}
