//! Time and processor time of one timed region.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A running measurement.
pub(crate) struct Clock {
    start: Instant,
    cpu: Option<Duration>,
}

/// A measurement that is done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Took {
    wall: Duration,
    cpu: Option<Duration>,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Clock {
            cpu: processor_time(),
            start: Instant::now(),
        }
    }

    pub(crate) fn stop(self) -> Took {
        let wall = self.start.elapsed();
        let cpu = self
            .cpu
            .zip(processor_time())
            .map(|(from, to)| to.saturating_sub(from));
        Took { wall, cpu }
    }
}

impl Took {
    /// Seconds on the clock.
    pub(crate) fn seconds(&self) -> f64 {
        self.wall.as_secs_f64()
    }

    /// Seconds of processor time; 0 where the system does not tell.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        self.cpu.map_or(0.0, |cpu| cpu.as_secs_f64())
    }

    /// The answer to a timed request that moved so many bytes.
    pub(crate) fn answer(self, bytes: u64) -> Value {
        json!({
            "seconds": self.wall.as_secs_f64(),
            "cpu_seconds": self.cpu.map(|cpu| cpu.as_secs_f64()),
            "bytes": bytes,
        })
    }
}

/// Processor time of all threads of this process so far, to a hundredth of a second, where the
/// system tells it in `/proc`.
fn processor_time() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the program's name in parentheses, which may hold anything.
    let after_name = stat.rsplit_once(')')?.1;
    let mut ticks = after_name
        .split_whitespace()
        .skip(11)
        .map(str::parse::<u64>);
    let (user, system) = (ticks.next()?.ok()?, ticks.next()?.ok()?);
    Some(Duration::from_millis((user + system) * 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_processor_time() {
        let clock = Clock::start();
        let mut sum = 0u64;
        while clock.start.elapsed() < Duration::from_millis(200) {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        let took = clock.stop();
        assert!(took.cpu.is_some_and(|cpu| !cpu.is_zero()));
        assert_eq!(took.answer(7)["bytes"], 7);
    }
}
