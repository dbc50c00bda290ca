//! The system under test, driven by JSON lines: what `bench/hsbench` starts beside its peers.
//!
//! Above the facade, beside the command line. `serve` reads one request per line and answers each
//! with one line, so that the start of a process is in no timed region; `sim` runs the simulated
//! cloud as a process of its own until its input ends.
//!
//! Invariant: a time in an answer covers the facade's call alone. Preparing, checking and
//! releasing buffers are requests of their own.

mod cells;
mod clock;
mod floors;
mod fuzz;
mod pattern;
mod protocol;
mod queries;
mod serve;
mod settings;
mod simulate;

use std::path::Path;
use std::process::ExitCode;

use hyperslab::{Error, Result};

use crate::simulate::Extras;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hyperslab-bench: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        ["serve"] => serve::run(),
        ["sim", preset, bucket] => simulate::run(preset, bucket, &Extras::default()),
        ["sim", preset, bucket, extras] => simulate::run(preset, bucket, &parse(extras)?),
        ["fuzz", folder, seconds, seed] => {
            let number = |text: &str| {
                text.parse::<u64>()
                    .map_err(|_| Error::invalid(format!("{text:?} is no number")))
            };
            let found = fuzz::run(Path::new(folder), number(seconds)?, number(seed)?)?;
            println!("{found}");
            Ok(())
        }
        _ => Err(Error::invalid("the arguments are not understood")
            .with_hint("use `serve`, `sim PRESET BUCKET [JSON]` or `fuzz FOLDER SECONDS SEED`")),
    }
}

fn parse(extras: &str) -> Result<Extras> {
    serde_json::from_str(extras)
        .map_err(|e| Error::invalid(format!("the simulator cannot have this: {e}")))
}
