//! A caller's buffer that many tasks fill (or read) at once, each its own cells.
//!
//! The one place of the engine with `unsafe` (see `docs/design/003-canvas.md`): chunks land
//! interleaved in the destination, row by row, so safe splitting would need a slice per row of
//! every chunk. Instead tasks write through a pointer, under two rules:
//!
//! 1. *Disjoint*: within one query every destination cell belongs to one piece (the invariant of
//!    `hyperslab_format::Resolver` and of `Part::copies`, property-tested in `index`), so no two
//!    tasks touch the same byte.
//! 2. *Gated*: a task touches the buffer only while it holds the gate or a [`View`]; closing the gate
//!    waits for those inside and for all views, and keeps later ones out. A canvas over a borrowed
//!    buffer is closed before the borrow ends, also when the query fails, panics or is cancelled.

#![allow(unsafe_code)]

use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock, RwLockReadGuard};

/// Shared access to a buffer.
#[derive(Debug, Clone)]
pub(crate) struct Canvas(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    pointer: *mut u8,
    len: usize,
    /// True while the buffer may be touched.
    gate: RwLock<bool>,
    /// Views that are out; none are given any more once it is `None`.
    views: Mutex<Option<usize>>,
    /// Tells of views that came back.
    returned: Condvar,
    /// Keeps an owned buffer alive for as long as anyone holds the canvas, or until it is taken out.
    owned: Mutex<Option<Owned>>,
}

/// An owned buffer whose content is only reached through the canvas' pointer.
#[derive(Debug)]
struct Owned(*mut [u8]);

// SAFETY: the pointer is only dereferenced through `Access`, under the rules above; `u8` has no
// thread affinity.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: the pointer came from `Box::into_raw` in `Canvas::owned` and is released once,
        // when the last holder of the canvas is gone.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// Closes the gate when the borrow of the buffer ends.
pub(crate) struct Borrowed<'a> {
    canvas: Canvas,
    _buffer: std::marker::PhantomData<&'a mut [u8]>,
}

/// The right to touch the buffer; held for one piece of work at a time.
pub(crate) struct Access<'a> {
    inner: &'a Inner,
    _gate: RwLockReadGuard<'a, bool>,
}

impl Canvas {
    /// A canvas over a buffer of its own, all zero.
    pub(crate) fn owned(len: usize) -> Self {
        let canvas = Self::from_vec(vec![0; len]);
        canvas.ask_for_large_pages();
        canvas
    }

    /// The first touch of a fresh buffer costs a fault per page; with pages of 2 MiB there are 512
    /// times fewer of them. NumPy asks for the same.
    fn ask_for_large_pages(&self) {
        const LARGE: usize = 2 << 20;
        let start = self.0.pointer.addr().next_multiple_of(LARGE);
        let end = (self.0.pointer.addr() + self.0.len) / LARGE * LARGE;
        #[cfg(target_os = "linux")]
        if end > start {
            let from = self.0.pointer.with_addr(start).cast();
            // SAFETY: the range lies inside the buffer that this canvas owns, and the advice
            // changes how it is backed, not what it holds. Refusal does no harm.
            let _ = unsafe {
                rustix::mm::madvise(from, end - start, rustix::mm::Advice::LinuxHugepage)
            };
        }
    }

    fn over(pointer: *mut u8, len: usize, owned: Option<Owned>) -> Self {
        Canvas(Arc::new(Inner {
            pointer,
            len,
            gate: RwLock::new(true),
            views: Mutex::new(Some(0)),
            returned: Condvar::new(),
            owned: Mutex::new(owned),
        }))
    }

    /// A canvas over given cells.
    pub(crate) fn from_vec(cells: Vec<u8>) -> Self {
        let len = cells.len();
        let buffer = Box::into_raw(cells.into_boxed_slice());
        Self::over(buffer.cast(), len, Some(Owned(buffer)))
    }

    /// A canvas over a borrowed buffer. The guard must stay on the caller's stack frame: its drop
    /// is what ends all access.
    pub(crate) fn borrow(buffer: &mut [u8]) -> Borrowed<'_> {
        Borrowed {
            canvas: Self::over(buffer.as_mut_ptr(), buffer.len(), None),
            _buffer: std::marker::PhantomData,
        }
    }

    /// A canvas over borrowed cells that are only read; the writing methods must not be used on
    /// it, and the engine's write path never does.
    pub(crate) fn borrow_source(buffer: &[u8]) -> Borrowed<'_> {
        Borrowed {
            canvas: Self::over(buffer.as_ptr().cast_mut(), buffer.len(), None),
            _buffer: std::marker::PhantomData,
        }
    }

    /// Enters the gate; `None` once it is closed.
    pub(crate) fn access(&self) -> Option<Access<'_>> {
        let gate = self.0.gate.read().ok()?;
        gate.then_some(Access {
            inner: &self.0,
            _gate: gate,
        })
    }

    /// All bytes of a source that nobody writes, for as long as the view lives; `None` once the gate
    /// is closed. Whoever closes the gate waits for it, so it is for work that ends soon by itself.
    pub(crate) fn view(&self) -> Option<View> {
        let mut views = self.0.views.lock().unwrap_or_else(PoisonError::into_inner);
        *views.as_mut()? += 1;
        Some(View(self.0.clone()))
    }

    fn close(&self) {
        match self.0.gate.write() {
            Ok(mut open) => *open = false,
            Err(poisoned) => *poisoned.into_inner() = false,
        }
        let views = self.0.views.lock().unwrap_or_else(PoisonError::into_inner);
        let out = |views: &mut Option<usize>| views.is_some_and(|out| out > 0);
        let waited = self.0.returned.wait_while(views, out);
        *waited.unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Takes the content of an owned canvas out. All tasks must be done; the gate is closed first. It
    /// is never copied: a worker that has just finished may hold the canvas for a moment longer.
    pub(crate) fn into_vec(self) -> Vec<u8> {
        self.close();
        let mut owned = self.0.owned.lock().unwrap_or_else(PoisonError::into_inner);
        match owned.take() {
            Some(owned) => {
                let raw = owned.0;
                std::mem::forget(owned);
                // SAFETY: `raw` came from `Box::into_raw`, and its `Owned` was forgotten. Other
                // holders of the canvas never touch the buffer again: the gate is closed.
                unsafe { Box::from_raw(raw) }.into_vec()
            }
            None => Vec::new(),
        }
    }
}

/// The bytes of a source canvas, which stay where they are until all views are gone.
#[derive(Debug)]
pub(crate) struct View(Arc<Inner>);

impl AsRef<[u8]> for View {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the buffer is alive and its gate open while this view is counted (rule 2), and a
        // source canvas is never written.
        unsafe { std::slice::from_raw_parts(self.0.pointer, self.0.len) }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        let mut views = self.0.views.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(out) = views.as_mut() {
            *out -= 1;
        }
        self.0.returned.notify_all();
    }
}

impl Borrowed<'_> {
    /// A handle for tasks.
    pub(crate) fn canvas(&self) -> Canvas {
        self.canvas.clone()
    }
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        self.canvas.close();
    }
}

impl Access<'_> {
    fn check(&self, offset: usize, len: usize) -> bool {
        offset
            .checked_add(len)
            .is_some_and(|end| end <= self.inner.len)
    }

    /// Copies `cells` to `offset`. Bytes outside the buffer are refused.
    #[inline]
    #[must_use]
    pub(crate) fn put(&self, offset: usize, cells: &[u8]) -> bool {
        if !self.check(offset, cells.len()) {
            return false;
        }
        // SAFETY: in bounds by the check; nobody else touches these bytes (rule 1) and the buffer
        // is alive (rule 2); `cells` is another buffer.
        unsafe {
            std::ptr::copy_nonoverlapping(
                cells.as_ptr(),
                self.inner.pointer.add(offset),
                cells.len(),
            );
        }
        true
    }

    /// The bytes at `offset`, for a reader that fills them in place. The caller must hold at most
    /// one such slice for any byte, which rule 1 gives when the ranges come from one piece.
    #[inline]
    #[allow(clippy::mut_from_ref)]
    pub(crate) fn slice_mut(&self, offset: usize, len: usize) -> Option<&mut [u8]> {
        if !self.check(offset, len) {
            return None;
        }
        // SAFETY: as in `put`; the bytes are initialised (owned buffers are zeroed, borrowed ones
        // were a slice).
        Some(unsafe { std::slice::from_raw_parts_mut(self.inner.pointer.add(offset), len) })
    }

    /// The bytes at `offset` of a source that nobody writes.
    #[inline]
    pub(crate) fn slice(&self, offset: usize, len: usize) -> Option<&[u8]> {
        if !self.check(offset, len) {
            return None;
        }
        // SAFETY: in bounds, alive (rule 2), and a source canvas is never written.
        Some(unsafe { std::slice::from_raw_parts(self.inner.pointer.add(offset), len) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_after_the_borrow_are_kept_out() {
        let mut buffer = vec![0u8; 8];
        let late = {
            let guard = Canvas::borrow(&mut buffer);
            let canvas = guard.canvas();
            assert!(canvas.access().unwrap().put(2, &[1, 2]));
            assert!(!canvas.access().unwrap().put(7, &[1, 2]));
            canvas
        };
        assert!(late.access().is_none());
        assert_eq!(buffer, [0, 0, 1, 2, 0, 0, 0, 0]);
    }

    #[test]
    fn the_content_moves_out_whoever_holds_the_canvas() {
        let canvas = Canvas::owned(1 << 16);
        let late = canvas.clone();
        assert!(canvas.access().unwrap().put(3, &[9]));
        let place = canvas.0.pointer;
        let cells = canvas.into_vec();
        assert_eq!(cells.as_ptr(), place);
        assert_eq!((cells.len(), cells[3]), (1 << 16, 9));
        assert!(late.access().is_none());
        assert!(late.view().is_none());
        assert!(late.into_vec().is_empty());
    }

    #[test]
    fn the_borrow_ends_when_all_views_are_gone() {
        let buffer = vec![7u8; 1 << 16];
        let guard = Canvas::borrow_source(&buffer);
        let canvas = guard.canvas();
        let (view, other) = (canvas.view().unwrap(), canvas.view().unwrap());
        drop(other);
        let seen = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(50));
            view.as_ref().iter().all(|byte| *byte == 7)
        });
        drop(guard);
        // The guard could go only after the view, which the thread has dropped at its end.
        assert!(canvas.view().is_none());
        assert!(seen.join().unwrap());
    }

    #[test]
    fn many_threads_fill_their_own_cells() {
        let canvas = Canvas::owned(64 * 1024);
        std::thread::scope(|scope| {
            for t in 0..8u8 {
                let canvas = canvas.clone();
                scope.spawn(move || {
                    for i in (usize::from(t)..64 * 1024).step_by(8) {
                        assert!(canvas.access().unwrap().put(i, &[t]));
                    }
                });
            }
        });
        let all = canvas.into_vec();
        assert!(
            all.iter()
                .enumerate()
                .all(|(i, b)| usize::from(*b) == i % 8)
        );
    }
}
