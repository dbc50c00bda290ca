//! The matrix: data type × codecs × shards × order × chunk shape.
//!
//! The number of values along each axis is prime to all others, so that counting along all axes at
//! once meets every pair of values soon and every combination in the end.

use hyperslab::{ArraySpec, ChunkKeys, Compression, FillValue, Shape, numpy};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use super::cell::random_cell;
use crate::{Outcome, same};

const DTYPES: [&str; 13] = [
    "bool",
    "int8",
    "uint16",
    "int32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "U3",
    "S5",
    "datetime64[ns]",
    r#"[["id", "<i4"], ["name", "|S3"], ["at", [["x", "<f8"], ["y", "<f2"]]]]"#,
];

#[derive(Debug, Clone, Copy)]
enum Codecs {
    Raw,
    BigEndian,
    Zstd,
    Gzip,
    Blosc,
    Crc32c,
    ShuffledZlib,
}

const CODECS: [Codecs; 7] = [
    Codecs::Raw,
    Codecs::BigEndian,
    Codecs::Zstd,
    Codecs::Gzip,
    Codecs::Blosc,
    Codecs::Crc32c,
    Codecs::ShuffledZlib,
];

#[derive(Debug, Clone, Copy)]
enum Order {
    Rows,
    Columns,
    Mixed,
}

const ORDERS: [Order; 3] = [Order::Rows, Order::Columns, Order::Mixed];

#[derive(Debug, Clone, Copy)]
enum Chunks {
    /// Sides divide the array's.
    Even,
    /// Chunks at the border hang over it.
    Ragged,
    /// One cell each.
    Single,
    /// One chunk, larger than the array.
    Larger,
    /// Whole along one axis, short along the others.
    Slices,
}

const CHUNKS: [Chunks; 5] = [
    Chunks::Even,
    Chunks::Ragged,
    Chunks::Single,
    Chunks::Larger,
    Chunks::Slices,
];

/// One combination, with a random array that has it.
pub(super) struct Case {
    /// What it combines, for failures.
    pub(super) name: String,
    pub(super) spec: ArraySpec,
    pub(super) fill: Vec<u8>,
    pub(super) rng: StdRng,
}

impl Case {
    /// The case of a number.
    pub(super) fn new(number: usize) -> Outcome<Case> {
        let mut rng = StdRng::seed_from_u64(number as u64);
        let rank = rng.random_range(1..=4usize);
        let longest = [0u64, 120, 25, 10, 6][rank];
        let (dtype, codecs) = (DTYPES[number % DTYPES.len()], CODECS[number % CODECS.len()]);
        let (order, chunks) = (ORDERS[number % ORDERS.len()], CHUNKS[number % CHUNKS.len()]);
        let sharded = number.is_multiple_of(2);
        let mut unit: Vec<u64> = (0..rank)
            .map(|_| rng.random_range(1..=longest.div_ceil(2)))
            .collect();
        let sides: Vec<u64> = unit
            .iter()
            .map(|&side| match chunks {
                Chunks::Even => side * rng.random_range(1..=longest.div_ceil(side)),
                _ => rng.random_range(1..=longest),
            })
            .collect();
        match chunks {
            Chunks::Even | Chunks::Ragged => {}
            Chunks::Single => unit.fill(1),
            Chunks::Larger => {
                unit = sides
                    .iter()
                    .map(|side| side + rng.random_range(1..4))
                    .collect()
            }
            Chunks::Slices => {
                let axis = rng.random_range(0..rank);
                unit = unit.iter().map(|side| side.div_ceil(3)).collect();
                unit[axis] = sides[axis];
            }
        }
        let stored = numpy::parse_dtype(dtype)?.dtype;
        let mut spec = ArraySpec::new(Shape::new(sides)?, stored.clone());
        spec.shards = Some(match sharded {
            true => unit
                .iter()
                .map(|side| side * rng.random_range(1..=4))
                .collect(),
            false => Vec::new(),
        });
        spec.chunks = Some(unit);
        spec.order = match order {
            Order::Rows => None,
            Order::Columns => Some((0..rank).rev().collect()),
            Order::Mixed => {
                let mut dims: Vec<usize> = (0..rank).collect();
                dims.shuffle(&mut rng);
                Some(dims)
            }
        };
        spec.big_endian = matches!(codecs, Codecs::BigEndian);
        spec.compression = compression(codecs, stored.cell_bytes().unwrap_or(1));
        let fill = match rng.random_bool(0.5) {
            true => random_cell(&mut rng, &stored),
            false => FillValue::zero(&stored).bytes().to_vec(),
        };
        spec.fill = Some(FillValue::from_bytes(&stored, &fill)?);
        spec.keys = rng.random_bool(0.3).then_some(ChunkKeys::V2('.'));
        let name = format!(
            "case {number} ({dtype}, {codecs:?}, {order:?}, {chunks:?}, {:?} in {:?} in {})",
            spec.chunks, spec.shards, spec.shape
        );
        Ok(Case {
            name,
            spec,
            fill,
            rng,
        })
    }
}

fn compression(codecs: Codecs, cell: u64) -> Compression {
    let codec = |name: &str, settings: Value| json!({"name": name, "configuration": settings});
    Compression::Codecs(match codecs {
        Codecs::Raw | Codecs::BigEndian => return Compression::None,
        Codecs::Zstd => vec![codec("zstd", json!({"level": 3, "checksum": true}))],
        Codecs::Gzip => vec![codec("gzip", json!({"level": 4}))],
        Codecs::Blosc => vec![codec(
            "blosc",
            json!({"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": cell, "blocksize": 0}),
        )],
        Codecs::Crc32c => vec![json!({"name": "crc32c"})],
        Codecs::ShuffledZlib => vec![
            codec("numcodecs.shuffle", json!({"elementsize": cell})),
            codec("numcodecs.zlib", json!({"level": 1})),
            json!({"name": "crc32c"}),
        ],
    })
}

/// The axes are prime to one another, or some combinations would never be met.
pub(super) fn check_axes() -> Outcome {
    let lengths = [DTYPES.len(), CODECS.len(), ORDERS.len(), CHUNKS.len(), 2];
    let divides =
        |a: usize, b: usize| (2..=a.min(b)).any(|n| a.is_multiple_of(n) && b.is_multiple_of(n));
    for (at, &a) in lengths.iter().enumerate() {
        for &b in &lengths[at + 1..] {
            same("a common divisor of two axes", divides(a, b), false)?;
        }
    }
    Ok(())
}
