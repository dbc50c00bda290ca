//! The end of a run: errors as one sentence and one hint, exit codes, logs.

use std::error::Error as _;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use hyperslab::{Error, ErrorKind, Result};
use serde_json::{Value, json};
use tracing_subscriber::EnvFilter;

use crate::args::Global;
use crate::context::Context;
use crate::interrupt::Ended;
use crate::size;

/// The exit code of an interrupted run, as shells have it for SIGINT.
const INTERRUPTED: u8 = 130;
/// The exit code of "different" and "unhealthy".
const DIFFERENT: u8 = 1;

/// Logs to standard error: RUST_LOG, or as often as `-v` was given.
pub(crate) fn start_logging(global: &Global) {
    let level = match global.verbose {
        0 => "error",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new(format!("error,s3s=off,hyperslab={level},hyperslab_store={level},hyperslab_format={level},hyperslab_sim={level}")));
    // A second subscriber cannot be there: this is the program's first action.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .try_init();
}

/// Reports how the run ended.
pub(crate) fn finish(context: &Context, outcome: Result<Ended>) -> ExitCode {
    if context.verbose > 0 {
        print_meters(context);
    }
    // With -v it was said in the log when it happened.
    let trouble = context.session.cache_trouble();
    if let Some(trouble) = trouble.filter(|_| context.verbose == 0) {
        context.note(&format!("warning: {}", one_line(&trouble)));
    }
    match outcome {
        Ok(Ended::Finished(true)) => ExitCode::SUCCESS,
        Ok(Ended::Finished(false)) => ExitCode::from(DIFFERENT),
        Ok(Ended::Interrupted) => ExitCode::from(INTERRUPTED),
        Err(error) => {
            let mut cause = error.source();
            while let Some(inner) = cause {
                tracing::debug!("caused by: {inner}");
                cause = inner.source();
            }
            fail(&error, context.json)
        }
    }
}

/// Prints an error and gives its exit code.
pub(crate) fn fail(error: &Error, json: bool) -> ExitCode {
    let mut text = format!("error: {}\n", one_line(error.message()));
    if let Some(hint) = error.hint() {
        text.push_str(&format!("hint: {}\n", one_line(hint)));
    }
    // Nothing can be done about a closed standard error or output here.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
    if json {
        let _ = writeln!(std::io::stdout().lock(), "{}", error_json(error));
    }
    ExitCode::from(exit_code(error.kind()))
}

/// The error as `--json` prints it.
pub(crate) fn error_json(error: &Error) -> Value {
    json!({"error": {
        "kind": error.kind().as_str(),
        "message": error.message(),
        "hint": error.hint(),
        "exit_code": exit_code(error.kind()),
    }})
}

/// The exit code of each kind of error.
pub(crate) fn exit_code(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::Invalid => 2,
        ErrorKind::NotFound => 3,
        ErrorKind::Denied => 4,
        ErrorKind::Conflict => 5,
        ErrorKind::Unavailable => 6,
        ErrorKind::Data => 7,
        _ => 70,
    }
}

/// Names in stores may hold anything, also line breaks and terminal control sequences.
pub(crate) fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

fn print_meters(context: &Context) {
    for (url, meter) in context.session.meters() {
        if meter.total() > 0 {
            context.note(&format!(
                "{}: {} requests ({} retries), {} read, {} written",
                crate::address::without_query(&url),
                size::count(meter.total()),
                size::count(meter.retries),
                size::show(meter.bytes_in),
                size::show(meter.bytes_out),
            ));
        }
    }
}
