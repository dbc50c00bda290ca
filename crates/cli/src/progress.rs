//! Progress bars: on standard error, on a terminal, for work that takes longer than a second.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hyperslab::Progress;
use indicatif::{ProgressBar, ProgressStyle};

/// Work shorter than this shows no bar.
const SILENT: Duration = Duration::from_secs(1);

/// What a bar counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Bytes,
    /// Objects, of which nobody knows beforehand how many there are.
    Objects,
}

/// A bar that shows itself once the work turns out to be long.
pub(crate) struct Bar {
    what: String,
    unit: Unit,
    enabled: bool,
    begun: Instant,
    total: AtomicU64,
    done: AtomicU64,
    shown: OnceLock<ProgressBar>,
}

impl Bar {
    pub(crate) fn new(what: &str, unit: Unit, enabled: bool) -> Self {
        Bar {
            what: what.to_owned(),
            unit,
            enabled,
            begun: Instant::now(),
            total: AtomicU64::new(0),
            done: AtomicU64::new(0),
            shown: OnceLock::new(),
        }
    }

    fn draw(&self) -> ProgressBar {
        let bar = ProgressBar::new(self.total.load(Ordering::Relaxed));
        let template = match self.unit {
            Unit::Bytes => {
                "{msg} {wide_bar} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta}"
            }
            Unit::Objects => "{msg} {spinner} {human_pos} objects",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(self.what.clone());
        bar.enable_steady_tick(Duration::from_millis(250));
        bar
    }
}

impl Progress for Bar {
    /// Adds up, so that one bar can follow several arrays.
    fn start(&self, total_bytes: u64) {
        let total = self.total.fetch_add(total_bytes, Ordering::Relaxed) + total_bytes;
        if let Some(bar) = self.shown.get() {
            bar.set_length(total);
        }
    }

    fn add(&self, bytes: u64) {
        let done = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if self.enabled && self.begun.elapsed() > SILENT {
            self.shown.get_or_init(|| self.draw()).set_position(done);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = self.shown.get() {
            bar.finish_and_clear();
        }
    }
}
