//! The four data sets of Sarawagi & Stonebraker (1994) by the model of this crate, as JSON.
//!
//! `sequoia FILE SHAPE CELL_BYTES BLOCK_BYTES UNIT_BYTES DRIVES SEED`: blocks that the queries of a file
//! touch in the given order of cells, in default chunks, in chunks by pattern and in two copies; how far
//! apart blocks lie in both orders; and the units of media that a stream of queries switches.

use std::env;
use std::error::Error;
use std::fs;

use hyperslab_layout::{
    Limits, Media, Pattern, Starts, best, chunk_order, expected_blocks, linear_blocks, partition,
    replicas, seek_distance, switches,
};

/// Queries of the stream that units of media are counted for.
const STREAM: usize = 400;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [file, shape, cell, block, unit, drives, seed] = words.as_slice() else {
        return Err("sequoia FILE SHAPE CELL_BYTES BLOCK_BYTES UNIT_BYTES DRIVES SEED".into());
    };
    let shape: Vec<u64> = shape.split(',').map(str::parse).collect::<Result<_, _>>()?;
    let (cell, block): (u64, u64) = (cell.parse()?, block.parse()?);
    let pattern = Pattern::parse(&fs::read_to_string(file)?, &shape)?;
    let cells = block / cell;
    let starts = Starts::Anywhere;
    let default = proportional(&shape, cells);
    let found = best(&pattern, starts, &Limits::cells(cells))?;
    let two = replicas(&pattern, starts, &Limits::cells(cells), 2)?;
    let order = chunk_order(&pattern, &found.chunk, starts);
    let rows: Vec<usize> = (0..shape.len()).collect();
    let media = Media {
        unit_cells: unit.parse::<u64>()? / cell,
        drives: drives.parse()?,
        switch_seconds: 10.0,
    };
    let parts = partition(&pattern, starts, &media)?;
    let mut stream = Stream::new(&pattern, seed.parse()?);
    let queries: Vec<(Vec<u64>, Vec<u64>)> = (0..STREAM).map(|_| stream.next()).collect();
    let plain = queries
        .iter()
        .map(|q| consecutive(&shape, &found.chunk, &media, q));
    let parted = queries.iter().map(|q| parted(&shape, &parts.chunk, q));
    let list = |sides: &[u64]| format!("{sides:?}");
    println!(
        "{{\"linear\": {}, \"default_chunk\": {}, \"default\": {}, \"chunk\": {}, \"pattern\": {}, \
         \"proven\": {}, \"copies\": [{}], \"replicas\": {}, \"order\": {:?}, \"seek\": {}, \
         \"seek_reordered\": {}, \"unit\": {}, \"switches\": {}, \"switches_partitioned\": {}, \
         \"queries\": {STREAM}, \"aligned_linear\": {}, \"aligned_pattern\": {}}}",
        linear_blocks(&pattern, starts, cells),
        list(&default),
        expected_blocks(&pattern, &default, starts),
        list(&found.chunk),
        found.blocks,
        found.proven,
        two.chunks
            .iter()
            .map(|c| list(c))
            .collect::<Vec<_>>()
            .join(", "),
        two.blocks,
        order,
        seek_distance(&pattern, &found.chunk, &rows, starts),
        seek_distance(&pattern, &found.chunk, &order, starts),
        list(&parts.chunk),
        switches(plain, media.drives),
        switches(parted, media.drives),
        linear_blocks(&pattern, Starts::Aligned, cells),
        best(&pattern, Starts::Aligned, &Limits::cells(cells))?.blocks,
    );
    Ok(())
}

/// Chunks with sides in proportion to the array's, as the paper has them where nothing is known of reads.
fn proportional(shape: &[u64], cells: u64) -> Vec<u64> {
    let sides = |scale: f64| -> Vec<u64> {
        let each = shape.iter();
        each.map(|side| ((*side as f64 * scale) as u64).clamp(1, *side))
            .collect()
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        match sides(middle).iter().product::<u64>() <= cells {
            true => low = middle,
            false => high = middle,
        }
    }
    sides(low)
}

/// Queries of a pattern, one after another: (start, extent).
struct Stream<'a> {
    pattern: &'a Pattern,
    state: u64,
}

impl<'a> Stream<'a> {
    fn new(pattern: &'a Pattern, seed: u64) -> Self {
        Stream {
            pattern,
            state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        }
    }

    fn random(&mut self) -> f64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn next(&mut self) -> (Vec<u64>, Vec<u64>) {
        let mut left = self.random();
        let classes = self.pattern.classes();
        let mut chosen = &classes[classes.len() - 1];
        for class in classes {
            if left < class.weight {
                chosen = class;
                break;
            }
            left -= class.weight;
        }
        let sides = self.pattern.shape().iter().zip(&chosen.extent);
        let places: Vec<u64> = sides.map(|(side, extent)| side - extent + 1).collect();
        let start = places.iter().map(|n| (self.random() * *n as f64) as u64);
        (start.collect(), chosen.extent.clone())
    }
}

/// The chunks that a box touches, as indexes of the grid.
fn touched(chunk: &[u64], (start, extent): &(Vec<u64>, Vec<u64>)) -> Vec<Vec<u64>> {
    let mut all = vec![Vec::new()];
    for ((start, extent), side) in start.iter().zip(extent).zip(chunk) {
        let along = start / side..=(start + extent - 1) / side;
        let longer = |index: Vec<u64>| {
            along.clone().map(move |at| {
                let mut index = index.clone();
                index.push(at);
                index
            })
        };
        all = all.into_iter().flat_map(longer).collect();
    }
    all
}

/// Units when they are filled with chunks in the order of the grid.
fn consecutive(
    shape: &[u64],
    chunk: &[u64],
    media: &Media,
    query: &(Vec<u64>, Vec<u64>),
) -> Vec<u64> {
    let counts: Vec<u64> = shape
        .iter()
        .zip(chunk)
        .map(|(s, c)| s.div_ceil(*c))
        .collect();
    let per_unit = (media.unit_cells / chunk.iter().product::<u64>()).max(1);
    let number = |index: &Vec<u64>| {
        index
            .iter()
            .zip(&counts)
            .fold(0, |n, (i, count)| n * count + i)
    };
    let mut units: Vec<u64> = touched(chunk, query)
        .iter()
        .map(|i| number(i) / per_unit)
        .collect();
    units.sort_unstable();
    units.dedup();
    units
}

/// Units when each holds a part of this shape.
fn parted(shape: &[u64], part: &[u64], query: &(Vec<u64>, Vec<u64>)) -> Vec<u64> {
    let counts: Vec<u64> = shape
        .iter()
        .zip(part)
        .map(|(s, c)| s.div_ceil(*c))
        .collect();
    let number = |index: &Vec<u64>| {
        index
            .iter()
            .zip(&counts)
            .fold(0, |n, (i, count)| n * count + i)
    };
    touched(part, query).iter().map(number).collect()
}
