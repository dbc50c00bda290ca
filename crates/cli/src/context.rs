//! What every command has at hand: the session, the ways to print, and what to say if it is
//! interrupted.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;

use hyperslab::store::Environment;
use hyperslab::{Error, Options, Result, Session, settings};
use serde_json::Value;

use crate::args::Global;
use crate::caching;
use crate::progress::{Bar, Unit};

/// The surroundings of a command.
pub(crate) struct Context {
    pub(crate) session: Session,
    pub(crate) json: bool,
    pub(crate) quiet: bool,
    pub(crate) verbose: u8,
    /// Colours on standard output.
    pub(crate) colour: bool,
    /// What an interruption leaves behind, as a sentence.
    state: Mutex<Option<String>>,
}

impl Context {
    /// The surroundings that the global options ask for.
    pub(crate) fn new(global: &Global) -> Result<Self> {
        let mut options = Options::default();
        // Half for chunks on their way inside the session, half for the cells in our own buffers.
        options.memory = (global.memory.unwrap_or(options.memory) / 2).max(1);
        if let Some(concurrency) = global.concurrency {
            options.concurrency = usize::from(concurrency);
        }
        if let Some(planner) = global.planner {
            options.planner = planner;
        }
        options.phi = global.phi.unwrap_or(options.phi);
        options.place = global.place.unwrap_or(options.place);
        options.profile.clone_from(&global.profile);
        options.prices.clone_from(&global.prices);
        options.frozen = global.frozen;
        options.strict_sources = global.strict_sources;
        options.hedge = global.hedge;
        // An empty variable is one that is not set.
        let trace = global.trace.clone();
        options.trace = trace.filter(|folder| !folder.as_os_str().is_empty());
        options.deadline = global.deadline;
        options.disk_cache = caching::options(global);
        options.cache_fresh = global.cache_fresh.unwrap_or(options.cache_fresh);
        options.function = settings::function(
            global.function.as_deref(),
            global.function_secret_file.as_deref(),
            &Environment::process(),
        )?;
        let plain = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        Ok(Context {
            session: Session::new(options),
            json: global.json,
            quiet: global.quiet,
            verbose: global.verbose,
            colour: !plain && !global.json && std::io::stdout().is_terminal(),
            state: Mutex::new(None),
        })
    }

    /// Bytes that a command's own buffers may take: what `--memory` leaves beside the session.
    pub(crate) fn memory(&self) -> u64 {
        self.session.options().memory
    }

    /// Prints a result: `text` for people, `json` for machines.
    pub(crate) fn result(&self, text: &str, json: impl FnOnce() -> Value) -> Result<()> {
        match self.json {
            true => self.line(&json().to_string()),
            false => self.line(text.trim_end_matches('\n')),
        }
    }

    /// Prints what was done: silent with `--quiet`, JSON with `--json`.
    pub(crate) fn done(&self, text: &str, json: impl FnOnce() -> Value) -> Result<()> {
        match self.json {
            true => self.line(&json().to_string()),
            false if self.quiet => Ok(()),
            false => self.line(text),
        }
    }

    /// Prints a line to standard output.
    pub(crate) fn line(&self, text: &str) -> Result<()> {
        let mut out = std::io::stdout().lock();
        write_or_leave(
            out.write_all(text.as_bytes())
                .and_then(|()| out.write_all(b"\n")),
        )?;
        write_or_leave(out.flush())
    }

    /// Tells something on standard error that is not a result.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            // A closed standard error is no reason to stop the work.
            let _ = writeln!(std::io::stderr().lock(), "{text}");
        }
    }

    /// A progress bar for work that takes bytes.
    pub(crate) fn bar(&self, what: &str) -> Bar {
        Bar::new(what, Unit::Bytes, self.shows_progress())
    }

    /// A counter for work that takes objects.
    pub(crate) fn counter(&self, what: &str) -> Bar {
        Bar::new(what, Unit::Objects, self.shows_progress())
    }

    fn shows_progress(&self) -> bool {
        !self.quiet && !self.json && std::io::stderr().is_terminal()
    }

    /// Says what an interruption from here on leaves behind.
    pub(crate) fn set_state(&self, state: impl Into<String>) {
        if let Ok(mut slot) = self.state.lock() {
            *slot = Some(state.into());
        }
    }

    /// What an interruption leaves behind.
    pub(crate) fn state(&self) -> Option<String> {
        self.state.lock().ok().and_then(|slot| slot.clone())
    }

    /// Bold, where colours are shown.
    pub(crate) fn bold(&self, text: &str) -> String {
        if self.colour {
            format!("\u{1b}[1m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

/// A reader that went away (`| head`) ends the program silently; other failures are errors.
pub(crate) fn write_or_leave(result: std::io::Result<()>) -> Result<()> {
    match result {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(e) => Err(Error::unavailable(format!(
            "standard output cannot be written: {e}"
        ))),
    }
}
