//! Tasks of reads and writes: how many run at a time, with how much memory, and on which threads.
//!
//! Below the executors. Invariant: dropping a set of tasks stops them, and a task that panics is an
//! error, never a hang.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::session::MEMORY_UNIT;
use crate::{Error, Result, Session, runtime};

/// A bounded set of tasks; dropping it stops them.
pub(crate) struct Tasks<T = ()> {
    set: JoinSet<Result<T>>,
    handle: tokio::runtime::Handle,
    session: Session,
    done: Vec<T>,
    most: usize,
}

impl<T: Send + 'static> Tasks<T> {
    pub(crate) fn new(session: &Session) -> Result<Self> {
        Ok(Tasks {
            set: JoinSet::new(),
            handle: runtime::handle()?,
            session: session.clone(),
            done: Vec::new(),
            most: usize::MAX,
        })
    }

    /// Runs at most so many at a time, however many requests the session allows.
    pub(crate) fn at_most(mut self, tasks: usize) -> Self {
        self.most = tasks.max(1);
        self
    }

    /// Waits until a request with so many bytes in flight may start.
    pub(crate) async fn permits(
        &mut self,
        bytes: u64,
    ) -> Result<(OwnedSemaphorePermit, OwnedSemaphorePermit)> {
        let request = acquire(&self.session.inner().requests, 1).await?;
        Ok((request, self.memory(bytes).await?))
    }

    /// Waits until a task with so many bytes in flight may start.
    pub(crate) async fn memory(&mut self, bytes: u64) -> Result<OwnedSemaphorePermit> {
        while self.set.len() >= self.most
            && let Some(result) = self.set.join_next().await
        {
            self.done.push(flatten(result)?);
        }
        let inner = self.session.inner();
        let units = bytes
            .div_ceil(MEMORY_UNIT)
            .clamp(1, u64::from(inner.memory_units)) as u32;
        acquire(&inner.memory, units).await
    }

    pub(crate) fn spawn(
        &mut self,
        task: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<()> {
        self.set.spawn_on(task, &self.handle);
        while let Some(result) = self.set.try_join_next() {
            self.done.push(flatten(result)?);
        }
        Ok(())
    }

    pub(crate) async fn finish(self) -> Result<()> {
        self.results().await.map(drop)
    }

    pub(crate) async fn results(mut self) -> Result<Vec<T>> {
        while let Some(result) = self.set.join_next().await {
            self.done.push(flatten(result)?);
        }
        Ok(self.done)
    }
}

/// Does work on a task of its own, unless it ends at once; dropping the future stops it.
///
/// Semaphores are fair: what is released goes to whoever waits longest, also to a future that its owner
/// has stopped to poll, and everybody else would wait for that owner. A copy that reads ahead while it
/// writes is such an owner.
pub(crate) async fn apart<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    let mut work = Box::pin(work);
    if let std::task::Poll::Ready(done) = futures::poll!(work.as_mut()) {
        return done;
    }
    let mut task = JoinSet::new();
    task.spawn_on(work, &runtime::handle()?);
    match task.join_next().await {
        Some(result) => flatten(result),
        None => Err(panicked()),
    }
}

fn flatten<T>(result: std::result::Result<Result<T>, tokio::task::JoinError>) -> Result<T> {
    result.unwrap_or_else(|e| {
        Err(if e.is_panic() {
            panicked()
        } else {
            Error::unavailable("the operation was cancelled")
        })
    })
}

pub(crate) async fn acquire(semaphore: &Arc<Semaphore>, n: u32) -> Result<OwnedSemaphorePermit> {
    semaphore
        .clone()
        .acquire_many_owned(n)
        .await
        .map_err(|_| Error::internal("a session's semaphore was closed"))
}

/// Runs work that keeps a core busy, at most as many at a time as there are cores.
pub(crate) async fn on_core<T: Send + 'static>(
    session: &Session,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let permit = acquire(&session.inner().cpu, 1).await?;
    let (send, receive) = tokio::sync::oneshot::channel();
    runtime::workers()?.spawn(move || {
        // A panic must not take the worker with it; the receiver hears of it by the lost sender.
        let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        drop(permit);
        if let Ok(answer) = answer {
            // Nobody listens any more when the read was cancelled.
            let _ = send.send(answer);
        }
    });
    receive.await.unwrap_or_else(|_| Err(panicked()))
}

pub(crate) fn panicked() -> Error {
    Error::internal("a task panicked").with_hint("please report this")
}
