//! Parses the arguments; mistakes become one sentence and one hint, like every other error.

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;
use hyperslab::Error;

use crate::args::Cli;
use crate::report;

/// The arguments of this process, or the exit code if there is nothing to run.
pub(crate) fn parse() -> Result<Cli, ExitCode> {
    Cli::try_parse().map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A reader that went away is no failure.
            let _ = error.print();
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            ExitCode::from(2)
        }
        _ => {
            let json = std::env::args_os().any(|arg| arg == "--json");
            let command = std::env::args().nth(1).filter(|arg| !arg.starts_with('-'));
            report::fail(
                &as_error(&error.render().to_string(), command.as_deref()),
                json,
            )
        }
    })
}

/// The parser's paragraphs as one sentence and one hint.
fn as_error(rendered: &str, command: Option<&str>) -> Error {
    let mut sentence = String::new();
    let mut tip = None;
    for line in rendered
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        if line.starts_with("Usage:") || line.starts_with("For more information") {
            break;
        }
        match line.strip_prefix("tip: ") {
            Some(text) => tip = tip.or_else(|| Some(text.to_owned())),
            None => {
                if !sentence.is_empty() {
                    sentence.push(' ');
                }
                sentence.push_str(line.strip_prefix("error: ").unwrap_or(line));
            }
        }
    }
    let help = match command {
        Some(command) if known(command) => format!("see `hyperslab {command} --help`"),
        _ => "see `hyperslab --help`".to_owned(),
    };
    Error::invalid(sentence).with_hint(tip.map_or(help.clone(), |tip| format!("{tip}; {help}")))
}

fn known(command: &str) -> bool {
    use clap::CommandFactory;
    Cli::command()
        .get_subcommands()
        .any(|c| c.get_name() == command)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(arguments: &[&str]) -> Error {
        let error = Cli::try_parse_from(arguments).err().unwrap();
        as_error(&error.render().to_string(), arguments.get(1).copied())
    }

    #[test]
    fn mistakes_are_one_sentence() {
        let error = shown(&["hyperslab", "create", "x.zarr", "--shap", "3"]);
        assert!(error.message().contains("--shap"), "{error}");
        assert!(
            error.hint().unwrap().contains("hyperslab create --help"),
            "{error}"
        );
        let error = shown(&["hyperslab", "get"]);
        assert!(error.message().contains("required"), "{error}");
        let error = shown(&["hyperslab", "moo"]);
        assert!(
            error.hint().unwrap().contains("hyperslab --help"),
            "{error}"
        );
        assert!(!error.message().contains('\n'));
    }
}
