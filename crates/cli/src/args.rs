//! The arguments: global options and the list of commands.
//!
//! Each command's own arguments live with the command.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand};
use hyperslab::settings;

use crate::commands::{
    advise, cache, completions, cp, create, demo, diff, doctor, du, explain, get, info, ls,
    profile, put, rechunk, refs, replicas, resize, rm, sim, trace, tree, vol,
};

const ABOUT: &str = "Large multi-dimensional arrays on any object store.

An array is named by the URL of its store and the path below it; slices in NumPy's syntax stand in
brackets at the end (quote them in shells that expand brackets):

  hyperslab get 's3://bucket/sky.zarr/images[0:10, :, 5]' -o out.npy

Stores: plain paths and file://, s3://, az:// and abfs://, gs://, http(s)://. Credentials come from
each cloud's usual environment variables and profiles.";

const AFTER: &str = "Exit codes: 0 done, 1 different or unhealthy, 2 wrong request, 3 not found, \
4 access denied, 5 conflict, 6 store unavailable, 7 broken data, 70 defect, 130 interrupted.";

/// The whole command line.
#[derive(Parser)]
#[command(
    name = "hyperslab",
    version,
    about = "Large multi-dimensional arrays on any object store"
)]
#[command(long_about = ABOUT, after_help = AFTER, propagate_version = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Print results and errors as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Bytes of memory that moving data may take, such as 256MiB
    #[arg(long, global = true, value_name = "SIZE", value_parser = settings::bytes)]
    pub(crate) memory: Option<u64>,
    /// Requests in flight at a time
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) concurrency: Option<u16>,
    /// Which planner chooses the requests of a read: global, paper, get, range-merge, range-fetch,
    /// function, function-whole or splits=K
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) planner: Option<hyperslab::Mode>,
    /// Seconds that a dollar is worth: 0 minimises time, inf minimises money
    #[arg(long, global = true, value_name = "SECONDS", value_parser = settings::phi)]
    pub(crate) phi: Option<f64>,
    /// Where this client is: same-region, other-region or internet
    #[arg(long, global = true, value_name = "PLACE")]
    pub(crate) place: Option<hyperslab::Place>,
    /// What is known of the network: a file that `hyperslab profile` wrote, or aws, azure, gcp, local
    #[arg(long, global = true, value_name = "FILE", value_parser = settings::profile)]
    pub(crate) profile: Option<Arc<hyperslab::Profile>>,
    /// What requests and traffic cost: a file, or aws, azure, gcp, none
    #[arg(long, global = true, value_name = "FILE", value_parser = settings::prices)]
    pub(crate) prices: Option<Arc<hyperslab::PriceBook>>,
    /// Plan with the profile as it is: do not let the timings of reads refine it
    #[arg(long, global = true)]
    pub(crate) frozen: bool,
    /// Fail where a source of a virtual HDF5 dataset is missing, instead of reading the fill value
    #[arg(long, global = true)]
    pub(crate) strict_sources: bool,
    /// Ask a second time where an answer takes longer than 99 of 100 did, and take what comes first
    #[arg(long, global = true)]
    pub(crate) hedge: bool,
    /// End a read that takes longer, such as 30s, with an error
    #[arg(long, global = true, value_name = "TIME", value_parser = settings::time)]
    pub(crate) deadline: Option<Duration>,
    /// URL of the function next to the data; reads call it where that pays. Calls are signed with the
    /// secret in HYPERSLAB_FUNCTION_SECRET, and bear the token in HYPERSLAB_FUNCTION_TOKEN
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "HYPERSLAB_FUNCTION",
        hide_env_values = true
    )]
    pub(crate) function: Option<String>,
    /// File with the secret that calls of the function are signed with
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "HYPERSLAB_FUNCTION_SECRET_FILE"
    )]
    pub(crate) function_secret_file: Option<PathBuf>,
    /// Keep fetched bytes in this folder, and take from it what earlier commands fetched
    #[arg(long, global = true, value_name = "DIR", env = "HYPERSLAB_CACHE")]
    pub(crate) cache: Option<PathBuf>,
    /// Bytes that the folder of --cache may take: 1GiB where it is left out
    #[arg(long, global = true, value_name = "SIZE", value_parser = settings::positive_bytes)]
    pub(crate) cache_bytes: Option<u64>,
    /// Use cached bytes for so long, such as 10m, without asking the store whether they changed: it
    /// is always asked where this is left out
    #[arg(long, global = true, value_name = "TIME", value_parser = settings::time)]
    pub(crate) cache_fresh: Option<Duration>,
    /// Write down which cells are read, and when, to a file in this folder (see `hyperslab trace`)
    #[arg(long, global = true, value_name = "DIR", env = "HYPERSLAB_TRACE")]
    pub(crate) trace: Option<PathBuf>,
    /// Print results only: no notes, no progress
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Tell what is being done on standard error; twice tells more (RUST_LOG overrides)
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// What to do.
#[derive(Subcommand)]
pub(crate) enum Command {
    Ls(ls::Arguments),
    Tree(tree::Arguments),
    Info(info::Arguments),
    Get(get::Arguments),
    Explain(explain::Arguments),
    Advise(advise::Arguments),
    Put(put::Arguments),
    Create(Box<create::Arguments>),
    Resize(resize::Arguments),
    Cp(Box<cp::Arguments>),
    Rechunk(Box<rechunk::Arguments>),
    Refs(refs::Arguments),
    Replicas(replicas::Arguments),
    Rm(rm::Arguments),
    Du(du::Arguments),
    Diff(diff::Arguments),
    Cache(cache::Arguments),
    Doctor(doctor::Arguments),
    Profile(profile::Arguments),
    Demo(demo::Arguments),
    Sim(Box<sim::Arguments>),
    Trace(trace::Arguments),
    Vol(vol::Arguments),
    Completions(completions::Arguments),
}

impl Command {
    /// True if the command ends by a signal in its own orderly way.
    pub(crate) fn handles_signals(&self) -> bool {
        matches!(self, Command::Sim(_) | Command::Profile(_))
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        super::Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_examples() {
        for command in super::Cli::command().get_subcommands() {
            let help = command
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(
                help.contains("hyperslab "),
                "{} has no example",
                command.get_name()
            );
        }
    }
}
