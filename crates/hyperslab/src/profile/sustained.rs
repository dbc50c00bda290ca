//! Times requests for a few bytes that follow one another without a pause.
//!
//! Below [`super::network`], beside [`super::requests`]. While a wave is sent nothing arrives, and
//! while it arrives nothing is sent, so a wave shows the longer of the two and not both. In a read
//! they compete: every answer makes room for another request. Where that takes longer than the
//! window and the latency explain, the rest is the machine's work with each request.

use std::time::Instant;

use tokio::task::JoinSet;

use super::data::TestData;
use super::requests::{TINY, request};
use crate::{Error, Result};

/// Requests for each place in the window.
const TURNS: u64 = 3;
/// A stream this near to what window and latency allow tells nothing of the work.
const BOUND_BY_WINDOW: f64 = 1.2;

/// Seconds of work with each request, with `window` of them under way all the time; none where the
/// latency hides it.
pub(super) async fn work(data: &TestData, window: u64, latency: f64) -> Result<Option<f64>> {
    let requests = window * TURNS;
    let mut waiting = data.ranges(requests, TINY).into_iter();
    if (waiting.len() as u64) < requests {
        return Ok(None);
    }
    let mut running = JoinSet::new();
    let mut start = |running: &mut JoinSet<Result<f64>>| {
        if let Some((key, range)) = waiting.next() {
            let store = data.store().clone();
            running.spawn(async move { request(&store, &key, range).await });
        }
    };
    let begun = Instant::now();
    for _ in 0..window {
        start(&mut running);
    }
    while let Some(ended) = running.join_next().await {
        ended.map_err(|e| Error::internal("a request ended early").with_source(e))??;
        start(&mut running);
    }
    let seconds = begun.elapsed().as_secs_f64();
    Ok(beyond(seconds, requests, window, latency))
}

/// What each of so many requests took besides waiting.
fn beyond(seconds: f64, requests: u64, window: u64, latency: f64) -> Option<f64> {
    let waited = latency * requests.div_ceil(window) as f64;
    (seconds > BOUND_BY_WINDOW * waited).then(|| (seconds - latency) / requests as f64)
}

#[cfg(test)]
mod tests {
    use super::beyond;

    #[test]
    fn waiting_is_not_taken_for_work() {
        // Three turns of 20 ms take 60 ms and the noise of a machine.
        assert_eq!(beyond(0.060, 768, 256, 0.020), None);
        assert_eq!(beyond(0.071, 768, 256, 0.020), None);
        let work = beyond(0.020 + 768.0 * 0.0001, 768, 256, 0.020);
        assert!((work.unwrap() - 0.0001).abs() < 1e-12, "{work:?}");
        // Where there is no latency, all is work.
        assert_eq!(beyond(0.768, 768, 256, 0.0), Some(0.001));
    }
}
