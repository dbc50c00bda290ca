//! Sleeps that end within about a tenth of a millisecond of their deadline.
//!
//! Tokio's timers count whole milliseconds and round up, which would add 3 to 5 % to a latency of
//! 20 ms. One thread with a heap of deadlines and a condition variable has the resolution of the
//! kernel's high-resolution timers instead. The thread starts with the first sleep, so a
//! simulator without shaping never has one.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::sync::lock;

/// Deadlines this close count as reached. It is about what the kernel's timer slack and the wake-up
/// of a task take, so that sleeps end on time on average; and near-equal deadlines share a wake-up.
const GRAIN: Duration = Duration::from_micros(100);

/// Hands out sleeps; clones share one thread, which ends with the last of them.
#[derive(Clone)]
pub(crate) struct Timer {
    shared: Arc<Shared>,
    // Dropped with the last clone of the timer or its sleeps; tells the thread to end.
    _alive: Arc<Alive>,
}

struct Alive(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    deadlines: BinaryHeap<Reverse<(Instant, u64)>>,
    wakers: HashMap<u64, Waker>,
    next_id: u64,
    running: bool,
    stopped: bool,
}

impl Timer {
    /// A timer without a thread as yet.
    pub(crate) fn new() -> Self {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            changed: Condvar::new(),
        });
        Timer {
            _alive: Arc::new(Alive(Arc::clone(&shared))),
            shared,
        }
    }

    /// A future that is ready at `deadline`, at once if that is past.
    pub(crate) fn sleep_until(&self, deadline: Instant) -> Sleep {
        Sleep {
            timer: self.clone(),
            deadline,
            id: None,
        }
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        lock(&self.0.queue).stopped = true;
        self.0.changed.notify_one();
    }
}

/// A pending sleep.
pub(crate) struct Sleep {
    timer: Timer,
    deadline: Instant,
    id: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if Instant::now() + GRAIN >= self.deadline {
            return Poll::Ready(());
        }
        let deadline = self.deadline;
        let shared = Arc::clone(&self.timer.shared);
        let mut queue = lock(&shared.queue);
        // An id whose waker is gone has fired; it needs a new place in the heap.
        let id = match self.id.filter(|id| queue.wakers.contains_key(id)) {
            Some(id) => id,
            None => {
                let id = queue.next_id;
                queue.next_id += 1;
                let earliest = queue
                    .deadlines
                    .peek()
                    .is_none_or(|Reverse((at, _))| deadline < *at);
                queue.deadlines.push(Reverse((deadline, id)));
                if earliest {
                    shared.changed.notify_one();
                }
                id
            }
        };
        queue.wakers.insert(id, context.waker().clone());
        if !queue.running {
            queue.running = start(&shared);
            if !queue.running {
                // No thread can be had: stay correct by polling.
                context.waker().wake_by_ref();
            }
        }
        drop(queue);
        self.id = Some(id);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            lock(&self.timer.shared.queue).wakers.remove(&id);
        }
    }
}

fn start(shared: &Arc<Shared>) -> bool {
    let shared = Arc::clone(shared);
    std::thread::Builder::new()
        .name("sim-timer".into())
        .spawn(move || run(&shared))
        .is_ok()
}

fn run(shared: &Shared) {
    let mut due: Vec<Waker> = Vec::new();
    let mut queue = lock(&shared.queue);
    while !queue.stopped {
        let now = Instant::now();
        let mut wait = None;
        while let Some(Reverse((deadline, id))) = queue.deadlines.peek().copied() {
            if deadline > now + GRAIN {
                // As early as counts: waking up takes about as long again.
                wait = Some(deadline - now - GRAIN);
                break;
            }
            queue.deadlines.pop();
            due.extend(queue.wakers.remove(&id));
        }
        if !due.is_empty() {
            drop(queue);
            due.drain(..).for_each(Waker::wake);
            queue = lock(&shared.queue);
            continue;
        }
        queue = match wait {
            Some(wait) => match shared.changed.wait_timeout(queue, wait) {
                Ok((queue, _)) => queue,
                Err(poisoned) => poisoned.into_inner().0,
            },
            None => match shared.changed.wait(queue) {
                Ok(queue) => queue,
                Err(poisoned) => poisoned.into_inner(),
            },
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn sleeps_end_after_their_deadline_and_in_order() {
        let timer = Timer::new();
        let start = Instant::now();
        let ends = Arc::new(Mutex::new(Vec::new()));
        let tasks: Vec<_> = [30_u64, 5, 20, 5, 0]
            .into_iter()
            .map(|ms| {
                let (timer, ends) = (timer.clone(), Arc::clone(&ends));
                tokio::spawn(async move {
                    let deadline = start + Duration::from_millis(ms);
                    timer.sleep_until(deadline).await;
                    assert!(Instant::now() + GRAIN >= deadline);
                    lock(&ends).push(ms);
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*lock(&ends), [0, 5, 5, 20, 30]);
    }

    #[tokio::test]
    async fn a_dropped_sleep_leaves_nothing_behind() {
        let timer = Timer::new();
        let far = Instant::now() + Duration::from_secs(3600);
        let polled = tokio::time::timeout(Duration::from_millis(5), timer.sleep_until(far)).await;
        assert!(polled.is_err());
        assert!(lock(&timer.shared.queue).wakers.is_empty());
    }

    #[test]
    fn an_unused_timer_has_no_thread() {
        let timer = Timer::new();
        assert!(!lock(&timer.shared.queue).running);
    }
}
