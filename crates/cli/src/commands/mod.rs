//! One module per command: its arguments, its help, and what it does.
//!
//! Every command returns true if all is well and false for "different" or "unhealthy", which are
//! answers rather than errors.

pub(crate) mod advise;
pub(crate) mod cache;
pub(crate) mod completions;
pub(crate) mod cp;
pub(crate) mod create;
pub(crate) mod demo;
mod describe;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod du;
pub(crate) mod explain;
pub(crate) mod get;
pub(crate) mod info;
pub(crate) mod ls;
pub(crate) mod profile;
pub(crate) mod put;
pub(crate) mod rechunk;
pub(crate) mod refs;
pub(crate) mod replicas;
pub(crate) mod resize;
pub(crate) mod rm;
pub(crate) mod sim;
mod sim_options;
pub(crate) mod trace;
pub(crate) mod tree;
pub(crate) mod vol;

use hyperslab::Result;

use crate::args::Command;
use crate::context::Context;

/// Runs a command.
pub(crate) async fn run(command: Command, context: &Context) -> Result<bool> {
    match command {
        Command::Ls(arguments) => ls::run(&arguments, context).await,
        Command::Tree(arguments) => tree::run(&arguments, context).await,
        Command::Info(arguments) => info::run(&arguments, context).await,
        Command::Get(arguments) => get::run(&arguments, context).await,
        Command::Explain(arguments) => explain::run(&arguments, context).await,
        Command::Advise(arguments) => advise::run(&arguments, context).await,
        Command::Put(arguments) => put::run(&arguments, context).await,
        Command::Create(arguments) => create::run(&arguments, context).await,
        Command::Resize(arguments) => resize::run(&arguments, context).await,
        Command::Cp(arguments) => cp::run(&arguments, context).await,
        Command::Rechunk(arguments) => rechunk::run(&arguments, context).await,
        Command::Refs(arguments) => refs::run(&arguments, context).await,
        Command::Replicas(arguments) => replicas::run(&arguments, context).await,
        Command::Rm(arguments) => rm::run(&arguments, context).await,
        Command::Du(arguments) => du::run(&arguments, context).await,
        Command::Diff(arguments) => diff::run(&arguments, context).await,
        Command::Cache(arguments) => cache::run(&arguments, context),
        Command::Doctor(arguments) => doctor::run(&arguments, context).await,
        Command::Profile(arguments) => profile::run(&arguments, context).await,
        Command::Demo(arguments) => demo::run(&arguments, context).await,
        Command::Sim(arguments) => sim::run(&arguments, context).await,
        Command::Trace(arguments) => trace::run(&arguments, context),
        Command::Vol(arguments) => vol::run(&arguments, context),
        Command::Completions(arguments) => completions::run(&arguments, context),
    }
}
