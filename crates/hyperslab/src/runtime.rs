//! One async runtime per process, made on first use.
//!
//! Keyed by process id: a forked child (a PyTorch worker, say) inherits memory but no threads, so
//! it must not use its parent's runtime and makes one of its own.

use std::future::Future;
use std::pin::pin;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use rayon::{ThreadPool, ThreadPoolBuilder};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::{Error, Result};

/// How often a call that blocks asks whether it is to stop.
const INTERRUPTION: Duration = Duration::from_millis(100);

/// Says whether calls that block are to stop.
static INTERRUPTED: OnceLock<fn() -> Result<()>> = OnceLock::new();

static RUNTIME: Mutex<Option<(u32, &'static Runtime)>> = Mutex::new(None);
static WORKERS: Mutex<Option<(u32, &'static ThreadPool)>> = Mutex::new(None);

/// A handle of this process' runtime.
pub fn handle() -> Result<Handle> {
    let mut slot = RUNTIME
        .lock()
        .map_err(|_| Error::internal("the runtime's lock is poisoned"))?;
    let pid = std::process::id();
    if let Some((owner, runtime)) = *slot
        && owner == pid
    {
        return Ok(runtime.handle().clone());
    }
    let runtime = Builder::new_multi_thread()
        .worker_threads(cores().max(2))
        .max_blocking_threads(64)
        .thread_name("hyperslab")
        .enable_all()
        .build()
        .map_err(|e| Error::unavailable(format!("no threads could be started: {e}")))?;
    // Leaked on purpose: it lives as long as the process, and dropping a parent's runtime in a
    // forked child would wait for threads that do not exist there.
    let runtime: &'static Runtime = Box::leak(Box::new(runtime));
    *slot = Some((pid, runtime));
    Ok(runtime.handle().clone())
}

/// The threads that encode and decode: as many as there are cores, the same ones throughout, so
/// that their buffers and codec contexts stay warm.
pub(crate) fn workers() -> Result<&'static ThreadPool> {
    let mut slot = WORKERS
        .lock()
        .map_err(|_| Error::internal("the workers' lock is poisoned"))?;
    let pid = std::process::id();
    if let Some((owner, pool)) = *slot
        && owner == pid
    {
        return Ok(pool);
    }
    let pool = ThreadPoolBuilder::new()
        .num_threads(cores())
        .thread_name(|i| format!("hyperslab-core-{i}"))
        .build()
        .map_err(|e| Error::unavailable(format!("no threads could be started: {e}")))?;
    // Leaked for the same reasons as the runtime.
    let pool: &'static ThreadPool = Box::leak(Box::new(pool));
    *slot = Some((pid, pool));
    Ok(pool)
}

/// Runs a future to its end on this process' runtime, from a thread that is not part of one.
pub fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    if Handle::try_current().is_ok() {
        return Err(
            Error::invalid("a blocking call was made inside an async task")
                .with_hint("use the async method, or call from a thread of your own"),
        );
    }
    let Some(check) = INTERRUPTED.get() else {
        return handle()?.block_on(future);
    };
    handle()?.block_on(async {
        let mut future = pin!(future);
        loop {
            match tokio::time::timeout(INTERRUPTION, &mut future).await {
                Ok(done) => return done,
                Err(_) => check()?,
            }
        }
    })
}

/// Has every blocking call of this process ask `check` now and then, on the caller's own thread, and end
/// with the error that it gives: for interpreters that learn of Ctrl-C only when they look. The first
/// one that is set stays.
pub fn stop_when(check: fn() -> Result<()>) {
    // Whoever came first asks for the same.
    let _ = INTERRUPTED.set(check);
}

/// How many cores this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
