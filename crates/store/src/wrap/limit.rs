//! Adapts the number of requests in flight to what the endpoint bears.
//!
//! As TCP does it. Until the endpoint refuses for the first time, every success raises the limit by
//! one while it is in use, which doubles it with each round of requests. A refusal (503, 429,
//! timeout, reset) halves it, once for all the requests that were in flight together, and from then
//! on a round of successes raises it by one: additive increase, multiplicative decrease. All stores
//! of one endpoint share one limit.
//!
//! Invariant: a permit is given only while fewer than ⌊limit⌋ are out, and the limit is between 1
//! and the cap.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::oneshot;

use crate::{Entry, ErrorKind, Get, Got, Listing, Meta, Put, Result, Store, StoreRef, lock};

/// Where the limit starts: the window that reads are planned with. One that had to grow to it would
/// make the first read of a process wait a latency for every doubling, and the clouds bear it.
const START: usize = 256;

struct State {
    /// The process that counts; a forked child starts over, for it inherits no running request.
    process: u32,
    cap: usize,
    limit: f64,
    /// The endpoint has refused nothing as yet.
    unrefused: bool,
    in_flight: usize,
    /// Permits given so far: a request's number, to tell which refusals belong together.
    given: u64,
    /// Refusals of requests up to this number have been answered with a decrease.
    answered: u64,
    waiting: VecDeque<oneshot::Sender<Permit>>,
}

/// The limit of an endpoint; clones share it.
#[derive(Clone)]
pub struct LimitHandle(Arc<Mutex<State>>);

impl fmt::Debug for LimitHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LimitHandle({} of {})", self.in_flight(), self.current())
    }
}

/// The right to have one request in flight.
struct Permit {
    handle: LimitHandle,
    number: u64,
}

impl LimitHandle {
    /// A limit that never exceeds `cap` (at least 1).
    pub fn new(cap: usize) -> Self {
        let cap = cap.max(1);
        LimitHandle(Arc::new(Mutex::new(State {
            process: std::process::id(),
            cap,
            limit: cap.min(START) as f64,
            unrefused: true,
            in_flight: 0,
            given: 0,
            answered: 0,
            waiting: VecDeque::new(),
        })))
    }

    /// How many requests may be in flight now.
    pub fn current(&self) -> usize {
        lock(&self.0).limit as usize
    }

    /// How many requests are in flight now.
    pub fn in_flight(&self) -> usize {
        lock(&self.0).in_flight
    }

    /// The most requests that may ever be in flight.
    pub fn cap(&self) -> usize {
        lock(&self.0).cap
    }

    /// Changes the cap; a limit above it is lowered at once, and one that was only ever held down by
    /// the cap is raised.
    pub fn set_cap(&self, cap: usize) {
        {
            let mut state = lock(&self.0);
            state.cap = cap.max(1);
            if state.unrefused {
                state.limit = state.limit.max(state.cap.min(START) as f64);
            }
            state.limit = state.limit.min(state.cap as f64);
        }
        self.serve();
    }

    async fn acquire(&self) -> Permit {
        loop {
            let waiter = {
                let mut state = lock(&self.0);
                if state.process != std::process::id() {
                    state.process = std::process::id();
                    state.in_flight = 0;
                    state.waiting.clear();
                }
                if state.waiting.is_empty() && state.has_room() {
                    return self.give(&mut state);
                }
                let (sender, receiver) = oneshot::channel();
                state.waiting.push_back(sender);
                receiver
            };
            // The sender is dropped unused only after a fork; then queue again.
            if let Ok(permit) = waiter.await {
                return permit;
            }
        }
    }

    fn give(&self, state: &mut State) -> Permit {
        state.in_flight += 1;
        state.given += 1;
        Permit {
            handle: self.clone(),
            number: state.given,
        }
    }

    /// Hands free room to those who wait.
    fn serve(&self) {
        loop {
            let (waiter, permit) = {
                let mut state = lock(&self.0);
                if !state.has_room() {
                    return;
                }
                let Some(waiter) = state.waiting.pop_front() else {
                    return;
                };
                if waiter.is_closed() {
                    continue;
                }
                (waiter, self.give(&mut state))
            };
            // If the waiter has given up, its permit comes back, is dropped here and serves others.
            drop(waiter.send(permit));
        }
    }

    fn learn(&self, permit: &Permit, refused: bool) {
        let mut state = lock(&self.0);
        if refused {
            if permit.number > state.answered {
                state.limit = (state.limit / 2.0).max(1.0);
                state.unrefused = false;
                state.answered = state.given;
                tracing::debug!(limit = state.limit as usize, "the endpoint is overloaded");
            }
        } else if state.in_flight as f64 >= state.limit / 2.0 {
            let step = match state.unrefused {
                true => 1.0,
                false => 1.0 / state.limit,
            };
            state.limit = (state.limit + step).min(state.cap as f64);
        }
    }
}

impl State {
    fn has_room(&self) -> bool {
        self.in_flight < self.limit as usize
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        {
            let mut state = lock(&self.handle.0);
            if state.process == std::process::id() {
                state.in_flight = state.in_flight.saturating_sub(1);
            }
        }
        self.handle.serve();
    }
}

/// A store with bounded, adaptive concurrency.
#[derive(Debug)]
pub struct Limit {
    inner: StoreRef,
    handle: LimitHandle,
}

impl Limit {
    /// Limits the requests to `inner` by `handle`.
    pub fn new(inner: StoreRef, handle: LimitHandle) -> Self {
        Limit { inner, handle }
    }

    async fn limited<T>(&self, request: impl Future<Output = Result<T>>) -> Result<T> {
        let permit = self.handle.acquire().await;
        let result = request.await;
        let refused = result
            .as_ref()
            .is_err_and(|e| e.kind() == ErrorKind::Unavailable);
        self.handle.learn(&permit, refused);
        result
    }
}

#[async_trait]
impl Store for Limit {
    fn url(&self) -> &str {
        self.inner.url()
    }

    async fn get(&self, key: &str, options: Get) -> Result<Got> {
        self.limited(self.inner.get(key, options)).await
    }

    async fn put(&self, key: &str, value: Vec<Bytes>, mode: Put) -> Result<Meta> {
        self.limited(self.inner.put(key, value, mode)).await
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.limited(self.inner.delete(key)).await
    }

    async fn head(&self, key: &str) -> Result<Meta> {
        self.limited(self.inner.head(key)).await
    }

    async fn list(
        &self,
        prefix: &str,
        page: Option<String>,
    ) -> Result<(Vec<Entry>, Option<String>)> {
        self.limited(self.inner.list(prefix, page)).await
    }

    async fn list_dir(&self, prefix: &str) -> Result<Listing> {
        self.limited(self.inner.list_dir(prefix)).await
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use proptest::prelude::*;

    use super::*;

    #[tokio::test]
    async fn permits_are_bounded_and_survive_waiters_that_give_up() {
        let handle = LimitHandle::new(2);
        let (a, b) = (handle.acquire().await, handle.acquire().await);
        let third = tokio::spawn({
            let handle = handle.clone();
            async move { drop(handle.acquire().await) }
        });
        let fourth = tokio::spawn({
            let handle = handle.clone();
            async move { handle.acquire().await }
        });
        tokio::task::yield_now().await;
        assert_eq!(handle.in_flight(), 2);
        third.abort();
        drop(a);
        let fourth = fourth.await.unwrap();
        assert_eq!(handle.in_flight(), 2);
        drop((b, fourth));
        assert_eq!(handle.in_flight(), 0);
    }

    #[tokio::test]
    async fn one_burst_of_refusals_halves_once_and_success_grows_again() {
        let handle = LimitHandle::new(16);
        let mut burst = Vec::new();
        for _ in 0..16 {
            burst.push(handle.acquire().await);
        }
        burst.iter().for_each(|permit| handle.learn(permit, true));
        assert_eq!(handle.current(), 8);
        burst.clear();
        for _ in 0..20 {
            let permit = handle.acquire().await;
            handle.learn(&permit, true);
        }
        assert_eq!(handle.current(), 1);
        for _ in 0..1000 {
            let mut round = Vec::new();
            for _ in 0..handle.current() {
                round.push(handle.acquire().await);
            }
            round.iter().for_each(|permit| handle.learn(permit, false));
        }
        assert_eq!(handle.current(), 16);
    }

    #[tokio::test]
    async fn an_idle_limit_does_not_grow() {
        let handle = LimitHandle::new(1000);
        for _ in 0..1000 {
            let permit = handle.acquire().await;
            handle.learn(&permit, false);
        }
        assert_eq!(handle.current(), START);
    }

    #[tokio::test]
    async fn a_limit_that_is_in_use_doubles_until_the_first_refusal() {
        let handle = LimitHandle::new(2000);
        assert_eq!(handle.current(), START);
        round(&handle, usize::MAX).await;
        assert_eq!(handle.current(), 2 * START);
        // One burst, one decrease.
        round(&handle, 0).await;
        assert_eq!(handle.current(), START);
        round(&handle, usize::MAX).await;
        round(&handle, usize::MAX).await;
        let grown = handle.current() - START;
        assert!((1..=2).contains(&grown), "{grown}");
    }

    #[test]
    fn a_cap_that_is_raised_raises_the_limit_unless_the_endpoint_has_refused() {
        let handle = LimitHandle::new(8);
        handle.set_cap(100);
        assert_eq!(handle.current(), 100);
        handle.set_cap(10);
        assert_eq!(handle.current(), 10);
        let permit = handle.acquire().now_or_never().unwrap();
        handle.learn(&permit, true);
        handle.set_cap(100);
        assert_eq!(handle.current(), 5);
    }

    /// As many requests at once as the limit allows, of which the endpoint serves `bears`; returns
    /// how many were sent and how many refused.
    async fn round(handle: &LimitHandle, bears: usize) -> (usize, usize) {
        let mut permits = Vec::new();
        for _ in 0..handle.current() {
            permits.push(handle.acquire().await);
        }
        let sent = permits.len();
        for (at, permit) in permits.iter().enumerate() {
            handle.learn(permit, at >= bears);
        }
        (sent, sent.saturating_sub(bears))
    }

    #[tokio::test]
    async fn the_limit_finds_what_an_endpoint_bears() {
        for bears in [8, 40, 300] {
            let handle = LimitHandle::new(512);
            for _ in 0..400 {
                round(&handle, bears).await;
            }
            let (mut sent, mut refused) = (0, 0);
            for _ in 0..1000 {
                let (more, no) = round(&handle, bears).await;
                (sent, refused) = (sent + more, refused + no);
            }
            let mean = sent as f64 / 1000.0;
            assert!(mean > 0.6 * bears as f64, "{bears}: {mean} at a time");
            assert!(refused * 20 < sent, "{bears}: {refused} of {sent} refused");
        }
    }

    /// What may happen to a limit, with the place of a permit where one is meant.
    #[derive(Debug, Clone)]
    enum Event {
        Acquire,
        Succeed(usize),
        Refuse(usize),
        Abandon(usize),
        Cap(usize),
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            4 => Just(Event::Acquire),
            2 => any::<usize>().prop_map(Event::Succeed),
            1 => any::<usize>().prop_map(Event::Refuse),
            1 => any::<usize>().prop_map(Event::Abandon),
            1 => (0..40usize).prop_map(Event::Cap),
        ]
    }

    proptest! {
        #[test]
        fn permits_are_counted_and_bounded_whatever_happens(
            cap in 0..40usize,
            events in proptest::collection::vec(event(), 0..300),
        ) {
            let handle = LimitHandle::new(cap);
            let mut permits = Vec::new();
            for event in events {
                let many = permits.len().max(1);
                match event {
                    // Whoever would have to wait gives up, and must leave nothing behind.
                    Event::Acquire => {
                        let room = permits.len() < handle.current();
                        let got = handle.acquire().now_or_never();
                        prop_assert_eq!(got.is_some(), room);
                        permits.extend(got);
                    }
                    Event::Cap(cap) => handle.set_cap(cap),
                    _ if permits.is_empty() => {}
                    Event::Succeed(at) => {
                        let permit = permits.swap_remove(at % many);
                        handle.learn(&permit, false);
                    }
                    Event::Refuse(at) => {
                        let permit = permits.swap_remove(at % many);
                        handle.learn(&permit, true);
                    }
                    Event::Abandon(at) => drop(permits.swap_remove(at % many)),
                }
                prop_assert_eq!(handle.in_flight(), permits.len());
                prop_assert!((1..=handle.cap()).contains(&handle.current()));
            }
        }
    }
}
