//! Executes every forced plan and ours in virtual time, over a whole grid, and prints one JSON
//! object: cost T + φF of our plan ÷ that of the best forced plan.
//!
//! `plan_oracle [--quick] [--seeds N] [--client-micros X] [--only TEXT] [--every]`: `--only` keeps
//! the blocks whose name contains the text, `--every` prints every cell and not only the worst.

mod block;
mod summary;
mod wanted;
mod workload;
mod world;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use hyperslab_index::{Error, Result};

use block::{Block, Cell};
use wanted::Coding;
use workload::Workload;
use world::{PROVIDERS, World};

const CHUNKS: [u64; 4] = [64 << 10, 1 << 20, 4 << 20, 16 << 20];

/// What the command line asks for.
#[derive(Debug, Default)]
struct Arguments {
    quick: bool,
    every: bool,
    seeds: u64,
    client_micros: Option<f64>,
    only: Option<String>,
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self> {
        let mut parsed = Arguments {
            seeds: 4,
            ..Arguments::default()
        };
        while let Some(word) = words.next() {
            let mut value = || {
                words
                    .next()
                    .ok_or_else(|| Error::invalid(format!("{word} needs a value")))
            };
            match word.as_str() {
                "--quick" => parsed.quick = true,
                "--every" => parsed.every = true,
                "--seeds" => parsed.seeds = number(&value()?)?.max(1.0) as u64,
                "--client-micros" => parsed.client_micros = Some(number(&value()?)?),
                "--only" => parsed.only = Some(value()?),
                _ => {
                    return Err(
                        Error::invalid(format!("{word:?} is not understood")).with_hint(
                            "the options are --quick, --every, --seeds, --client-micros and --only",
                        ),
                    );
                }
            }
        }
        Ok(parsed)
    }
}

fn number(text: &str) -> Result<f64> {
    text.parse()
        .map_err(|_| Error::invalid(format!("{text:?} is no number")))
}

fn main() -> Result<()> {
    let arguments = Arguments::parse(std::env::args().skip(1))?;
    let begun = Instant::now();
    let own_work = arguments.client_micros.map(|micros| micros / 1e6);
    let mut worlds = Vec::new();
    for provider in PROVIDERS {
        for with_function in [true, false] {
            worlds.push(World::new(provider, with_function, own_work)?);
        }
    }
    let blocks = blocks(&worlds, &arguments);
    let seeds = if arguments.quick { 1 } else { arguments.seeds };
    let cells = together(&blocks, |block| block.cells(seeds))?;
    let client: Vec<f64> = worlds
        .iter()
        .map(|world| world.profile.network.request_seconds * 1e6)
        .collect();
    let mut document = summary::summary(&cells, arguments.every);
    document["seeds"] = seeds.into();
    document["client_micros"] = client.into();
    document["seconds"] = begun.elapsed().as_secs_f64().into();
    println!("{document}");
    Ok(())
}

fn blocks<'a>(worlds: &'a [World], arguments: &Arguments) -> Vec<Block<'a>> {
    let mut blocks = Vec::new();
    for workload in Workload::ALL {
        for coding in Coding::ALL {
            for world in worlds {
                for chunk_bytes in CHUNKS {
                    blocks.push(Block {
                        world,
                        workload,
                        coding,
                        chunk_bytes,
                    });
                }
            }
        }
    }
    // The quick ones are spread evenly over the grid.
    let every = if arguments.quick { 7 } else { 1 };
    let wanted = |block: &Block| match &arguments.only {
        Some(text) => block.name().contains(text.as_str()),
        None => true,
    };
    blocks.into_iter().filter(wanted).step_by(every).collect()
}

/// Works through the blocks on all cores; the cells come in the order of the blocks.
fn together(
    blocks: &[Block<'_>],
    work: impl Fn(&Block<'_>) -> Result<Vec<Cell>> + Sync,
) -> Result<Vec<Cell>> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<Vec<Cell>>)>> = Mutex::default();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(block) = blocks.get(i) else { break };
                    let cells = work(block);
                    if let Ok(mut done) = done.lock() {
                        done.push((i, cells));
                    }
                }
            });
        }
    });
    let mut done = done
        .into_inner()
        .map_err(|_| Error::internal("a thread that executed plans panicked"))?;
    done.sort_by_key(|(i, _)| *i);
    let mut cells = Vec::new();
    for (_, block) in done {
        cells.extend(block?);
    }
    Ok(cells)
}
