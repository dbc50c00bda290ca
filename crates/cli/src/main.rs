//! The command line `hyperslab`: large multi-dimensional arrays on any object store, from a shell.
//!
//! The topmost layer: it turns arguments into calls of the facade and results into text, JSON and
//! files. It holds no array logic of its own.
//!
//! Invariants: results go to standard output and everything else to standard error; a failure is
//! one sentence and one hint with an exit code that names its kind; a result file appears complete
//! or not at all.

mod address;
mod args;
mod blocks;
mod caching;
mod cell;
mod codec_text;
mod commands;
mod connector;
mod context;
mod curves;
mod doctor;
mod export;
mod histogram;
mod image;
mod interrupt;
mod layout;
mod moment;
mod npy;
mod permute;
mod progress;
mod report;
mod sides;
mod target;
mod text;
mod usage;

use std::process::ExitCode;

use context::Context;
pub(crate) use hyperslab::text::{size, table};

fn main() -> ExitCode {
    let cli = match usage::parse() {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    report::start_logging(&cli.global);
    let context = match Context::new(&cli.global) {
        Ok(context) => context,
        Err(error) => return report::fail(&error, cli.global.json),
    };
    let own_signals = cli.command.handles_signals();
    let work = Box::pin(commands::run(cli.command, &context));
    let outcome = hyperslab::block_on(interrupt::guard(work, &context, own_signals));
    report::finish(&context, outcome)
}
