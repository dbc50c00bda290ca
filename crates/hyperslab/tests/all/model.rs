//! Random writes and reads against a flat buffer and loops.

use hyperslab::{
    ArraySpec, Compression, FillValue, Hyperslab, Mode, Options, Region, Selection, Session, Shape,
    block_on,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;

use crate::{fresh, spec};

/// The whole array as a flat list of cells.
struct Model {
    shape: Vec<u64>,
    cells: Vec<[u8; 4]>,
}

impl Model {
    /// Offsets of a selection's cells in result order.
    fn offsets(&self, selection: &Selection) -> Vec<usize> {
        let shape = Shape::new(self.shape.iter().copied()).unwrap();
        match selection {
            Selection::All => (0..self.cells.len()).collect(),
            Selection::Points(points) => {
                points.iter().map(|p| shape.offset_of(p) as usize).collect()
            }
            Selection::Hyperslab(slab) => (0..self.cells.len())
                .filter(|i| slab.contains_point(&shape.coords_of(*i as u64)))
                .collect(),
            Selection::Union(union) => (0..self.cells.len())
                .filter(|i| union.contains_point(&shape.coords_of(*i as u64)))
                .collect(),
        }
    }
}

fn random_slab(rng: &mut StdRng, shape: &[u64]) -> Hyperslab {
    let mut parts = [vec![], vec![], vec![], vec![]];
    for side in shape {
        let block = rng.random_range(1..=(*side).min(3));
        let stride = rng.random_range(block..=block + 3);
        let start = rng.random_range(0..=side - block);
        let count = rng.random_range(1..=(side - start - block) / stride + 1);
        for (list, value) in parts.iter_mut().zip([start, stride, count, block]) {
            list.push(value);
        }
    }
    Hyperslab::new(&parts[0], &parts[1], &parts[2], &parts[3]).unwrap()
}

fn random_selection(rng: &mut StdRng, shape: &[u64], writing: bool) -> Selection {
    match rng.random_range(0..if writing { 4 } else { 5 }) {
        0 => Selection::All,
        1 => Selection::Hyperslab(random_slab(rng, shape)),
        2 => {
            let start: Vec<u64> = shape.iter().map(|n| rng.random_range(0..*n)).collect();
            let sides: Vec<u64> = shape
                .iter()
                .zip(&start)
                .map(|(n, s)| rng.random_range(1..=n - s))
                .collect();
            Selection::region(&Region::new(start, sides).unwrap())
        }
        3 => {
            let slabs = (0..rng.random_range(2..5))
                .map(|_| random_slab(rng, shape))
                .collect();
            Selection::from_hyperslabs(slabs).unwrap()
        }
        _ => {
            let n = rng.random_range(1..20);
            let coords = (0..n).flat_map(|_| {
                shape
                    .iter()
                    .map(|n| rng.random_range(0..*n))
                    .collect::<Vec<_>>()
            });
            Selection::points(shape.len(), coords.collect()).unwrap()
        }
    }
}

fn layouts(shape: &[u64], rng: &mut StdRng) -> Vec<ArraySpec> {
    let rank = shape.len();
    let base = || {
        let mut s = spec(shape, "i4");
        s.fill = Some(FillValue::from_json(&s.dtype, &json!(-7)).unwrap());
        s
    };
    let chunks: Vec<u64> = shape.iter().map(|n| rng.random_range(1..=*n)).collect();
    let order: Vec<usize> = (0..rank).rev().collect();
    let mut out = Vec::new();
    for compression in [
        Compression::None,
        Compression::Default,
        Compression::Codecs(vec![
            json!({"name": "numcodecs.shuffle", "configuration": {"elementsize": 4}}),
            json!({"name": "gzip", "configuration": {"level": 1}}),
            json!({"name": "crc32c"}),
        ]),
    ] {
        for sharded in [false, true] {
            for transposed in [false, true] {
                let mut s = base();
                s.chunks = Some(chunks.clone());
                s.compression = compression.clone();
                s.order = transposed.then(|| order.clone());
                s.big_endian = transposed;
                s.shards = Some(if sharded {
                    chunks.iter().map(|c| c * 2).collect()
                } else {
                    vec![]
                });
                out.push(s);
            }
        }
    }
    // A transpose outside of the shard, another inside, the index at the start, and a shard in a
    // shard.
    let inner: Vec<u64> = chunks.iter().rev().copied().collect();
    let index = json!([{"name": "bytes", "configuration": {"endian": "big"}}, {"name": "crc32c"}]);
    let leaf = json!([
        {"name": "transpose", "configuration": {"order": order}},
        {"name": "bytes", "configuration": {"endian": "little"}}
    ]);
    let shard = |shape: &[u64], codecs: &serde_json::Value| {
        json!({"name": "sharding_indexed", "configuration": {
            "chunk_shape": shape, "codecs": codecs, "index_codecs": index, "index_location": "start"}})
    };
    let transpose = json!({"name": "transpose", "configuration": {"order": order}});
    let twice: Vec<u64> = inner.iter().map(|c| c * 2).collect();
    for chain in [
        vec![transpose.clone(), shard(&inner, &leaf)],
        vec![transpose, shard(&twice, &json!([shard(&inner, &leaf)]))],
    ] {
        let mut s = base();
        s.chunks = Some(chunks.iter().map(|c| c * 4).collect());
        s.compression = Compression::Chain(chain);
        out.push(s);
    }
    out
}

fn run(url: &str, seed: u64, options: Options) {
    let mut rng = StdRng::seed_from_u64(seed);
    let rank = rng.random_range(1..=3);
    let shape: Vec<u64> = (0..rank).map(|_| rng.random_range(1..=13)).collect();
    let session = Session::new(options);
    for (i, spec) in layouts(&shape, &mut rng).into_iter().enumerate() {
        let shown = format!("seed {seed} layout {i} {spec:?}");
        let url = format!("{url}/s{seed}/a{i}");
        let array = block_on(session.create_array(&url, spec, false)).unwrap();
        let cells: usize = shape.iter().product::<u64>() as usize;
        let mut model = Model {
            shape: shape.clone(),
            cells: vec![(-7i32).to_le_bytes(); cells],
        };
        for step in 0..8 {
            let selection = random_selection(&mut rng, &shape, true);
            let offsets = model.offsets(&selection);
            let data: Vec<u8> = (0..offsets.len() * 4)
                .map(|_| rng.random_range(0..3u8))
                .collect();
            for (offset, cell) in offsets.iter().zip(data.as_chunks::<4>().0) {
                model.cells[*offset] = *cell;
            }
            if step % 2 == 0 {
                block_on(array.write(&selection, data)).unwrap();
            } else {
                array.write_from(&selection, &data).unwrap();
            }
            let selection = random_selection(&mut rng, &shape, false);
            let expected: Vec<u8> = model
                .offsets(&selection)
                .iter()
                .flat_map(|o| model.cells[*o])
                .collect();
            let got = block_on(array.read(&selection)).unwrap();
            assert_eq!(got, expected, "{shown} step {step} {selection:?}");
            let mut into = vec![0xee; expected.len()];
            array.read_into(&selection, &mut into).unwrap();
            assert_eq!(into, expected, "{shown} step {step} into");
        }
    }
}

#[test]
fn every_layout_in_memory() {
    let url = fresh();
    for seed in 0..25 {
        run(
            &url,
            seed,
            Options {
                planner: Mode::ALL[seed as usize % 4],
                ..Default::default()
            },
        );
    }
}

#[test]
fn every_layout_on_disk_and_through_the_cache() {
    let dir = tempfile::tempdir().unwrap();
    let url = dir.path().display().to_string();
    for seed in 100..110 {
        run(&url, seed, Options::default());
    }
    let cached = Options {
        cache_bytes: 1 << 20,
        ..Default::default()
    };
    let url = fresh();
    for seed in 200..210 {
        run(&url, seed, cached.clone());
    }
}

#[test]
fn tiny_memory_is_slow_but_right() {
    let url = fresh();
    for seed in 300..304 {
        run(
            &url,
            seed,
            Options {
                memory: 1,
                concurrency: 1,
                cores: 1,
                ..Default::default()
            },
        );
    }
}
