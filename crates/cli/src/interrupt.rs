//! Ctrl-C and SIGTERM: stop starting work, say what state things are in, exit with 130.
//!
//! Dropping the command's future drops the requests that run. Writes of objects are atomic, so a
//! dropped one has happened entirely or not at all.

use std::future::Future;

use hyperslab::Result;

use crate::context::Context;

/// How a command ended.
pub(crate) enum Ended {
    /// By itself; true if all is well, false for "different" or "unhealthy".
    Finished(bool),
    /// By a signal.
    Interrupted,
}

/// Runs a command until it ends or a signal arrives.
pub(crate) async fn guard(
    work: impl Future<Output = Result<bool>>,
    context: &Context,
    own_signals: bool,
) -> Result<Ended> {
    if own_signals {
        return work.await.map(Ended::Finished);
    }
    tokio::select! {
        ended = work => ended.map(Ended::Finished),
        () = stop_signal() => {
            let state = context.state();
            context.note(state.as_deref().map_or("interrupted", |s| s));
            Ok(Ended::Interrupted)
        }
    }
}

/// Waits for Ctrl-C or SIGTERM. Where signals cannot be caught it never returns, and they end the
/// process as they always do.
pub(crate) async fn stop_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
