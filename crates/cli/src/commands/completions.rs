//! `completions`: what shells need to complete our arguments.

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use hyperslab::Result;

use crate::args::Cli;
use crate::context::{Context, write_or_leave};

const EXAMPLES: &str = "Examples:
  hyperslab completions bash > ~/.local/share/bash-completion/completions/hyperslab
  hyperslab completions zsh > ~/.zfunc/_hyperslab
  hyperslab completions fish > ~/.config/fish/completions/hyperslab.fish";

/// Print the completion script of a shell
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The shell
    #[arg(value_parser = clap::builder::EnumValueParser::<Shell>::new())]
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments, _: &Context) -> Result<bool> {
    let mut script = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut Cli::command(),
        "hyperslab",
        &mut script,
    );
    write_or_leave(std::io::Write::write_all(
        &mut std::io::stdout().lock(),
        &script,
    ))?;
    Ok(true)
}
