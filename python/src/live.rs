//! Things of the engine that belong to one process.
//!
//! A forked process has its parent's memory and none of its threads, so what holds connections, tasks
//! or limits must not be used there, and not even be dropped: that would wait for threads that are not
//! there, or speak on the parent's connections.

use std::sync::{Mutex, PoisonError};

/// A value and the process that made it; there is always one but while it is dropped.
pub(crate) struct Live<T>(Mutex<Option<(u32, T)>>);

impl<T: Clone> Live<T> {
    pub(crate) fn new(value: T) -> Self {
        Live(Mutex::new(Some((std::process::id(), value))))
    }

    /// The value, made anew if another process made it.
    pub(crate) fn get<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let process = std::process::id();
        {
            let live = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((owner, value)) = &*live
                && *owner == process
            {
                return Ok(value.clone());
            }
        }
        let made = make()?;
        let mut live = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        leave(live.replace((process, made.clone())));
        Ok(made)
    }
}

impl<T> Drop for Live<T> {
    fn drop(&mut self) {
        let live = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        leave(live.take());
    }
}

/// Drops a value, unless another process made it.
fn leave<T>(live: Option<(u32, T)>) {
    if live
        .as_ref()
        .is_some_and(|(owner, _)| *owner != std::process::id())
    {
        std::mem::forget(live);
    }
}
