//! The events of one run, in their order.
//!
//! A request takes a slot of the window, the client's own work, a token of the rate limit or an
//! instance of the function, its latency (a call: the computed time too), and then flows. An answer
//! that the cloud streams slowly ends at the computed moment if that is later; meanwhile it counts
//! as an ordinary flow, so others get a little less of the bandwidth early and more of it later.
//!
//! Invariant: requests, and calls among themselves, take slots in the order in which they were asked
//! for.

use std::collections::VecDeque;

use super::schedule::Schedule;
use super::sharing::Sharing;
use super::{VirtualCloud, VirtualOutcome, VirtualRequest, Work};
use crate::function::FunctionModel;

/// A request of a piece of work.
#[derive(Debug, Clone, Copy)]
struct At {
    work: usize,
    request: usize,
}

#[derive(Debug)]
enum Event {
    /// It has left the client.
    Arrived(At),
    /// Its answer begins.
    FirstByte(At),
    /// Its answer is complete.
    Done(At),
}

/// Requests in flight, and those that wait for their turn.
struct Window {
    free: usize,
    waiting: VecDeque<At>,
}

impl Window {
    fn new(free: usize) -> Self {
        Window {
            free,
            waiting: VecDeque::new(),
        }
    }

    /// The next request, if there is room for it.
    fn enter(&mut self) -> Option<At> {
        self.free.checked_sub(1).and_then(|free| {
            let at = self.waiting.pop_front()?;
            self.free = free;
            Some(at)
        })
    }
}

/// A flow's request, and the moment before which its answer is not complete.
type Flow = (At, f64);

pub(super) struct Engine<'a> {
    cloud: &'a mut VirtualCloud,
    work: &'a [Work],
    most_pieces: usize,
    /// The piece of work that begins next, and how many are under way.
    next: usize,
    under_way: usize,
    /// Requests of each piece that are not complete.
    left: Vec<usize>,
    requests: Window,
    calls: Window,
    /// Calls that wait for an instance, with their latency.
    without_instance: VecDeque<(At, f64)>,
    events: Schedule<Event>,
    flows: Sharing<Flow>,
    outcome: VirtualOutcome,
}

impl<'a> Engine<'a> {
    pub(super) fn new(cloud: &'a mut VirtualCloud, work: &'a [Work], pieces: usize) -> Self {
        Engine {
            flows: Sharing::new(&cloud.config.network),
            requests: Window::new(cloud.config.window),
            calls: Window::new(cloud.config.call_window),
            cloud,
            work,
            most_pieces: pieces,
            next: 0,
            under_way: 0,
            left: work.iter().map(|work| work.requests.len()).collect(),
            without_instance: VecDeque::new(),
            events: Schedule::default(),
            outcome: VirtualOutcome::default(),
        }
    }

    pub(super) fn run(mut self) -> VirtualOutcome {
        let begun = self.cloud.now;
        loop {
            self.begin_work();
            self.fill_windows();
            let (event, end) = (self.events.next_at(), self.flows.next_end());
            let flow_first = match (event, end) {
                (None, None) => break,
                (Some(event), Some(end)) => end <= event,
                (event, _) => event.is_none(),
            };
            if flow_first {
                if let Some((now, (at, not_before))) = self.flows.end() {
                    self.cloud.now = now;
                    if not_before > now {
                        self.events.add(not_before, Event::Done(at));
                    } else {
                        self.done(at);
                    }
                }
            } else if let Some((now, event)) = self.events.take() {
                self.cloud.now = now;
                match event {
                    Event::Arrived(at) => self.arrived(at),
                    Event::FirstByte(at) => self.first_byte(at),
                    Event::Done(at) => self.done(at),
                }
            }
        }
        let config = &self.cloud.config;
        self.outcome.seconds = self.cloud.now - begun;
        self.outcome.dollars = self.outcome.bill(&config.prices, config.place);
        self.outcome
    }

    fn begin_work(&mut self) {
        while self.under_way < self.most_pieces && self.next < self.work.len() {
            let work = self.next;
            self.next += 1;
            if self.left[work] == 0 {
                continue;
            }
            self.under_way += 1;
            for request in 0..self.work[work].requests.len() {
                let at = At { work, request };
                self.window(at).waiting.push_back(at);
            }
        }
    }

    fn fill_windows(&mut self) {
        while let Some(at) = self.calls.enter() {
            self.send(at);
        }
        while let Some(at) = self.requests.enter() {
            self.send(at);
        }
    }

    /// The window that a request has to enter: calls do not load the line while they compute, so
    /// they have one of their own.
    fn window(&mut self, at: At) -> &mut Window {
        match self.request(at) {
            VirtualRequest::Get { .. } => &mut self.requests,
            VirtualRequest::Call { .. } => &mut self.calls,
        }
    }

    /// The client's own work, one request after another.
    fn send(&mut self, at: At) {
        let cloud = &mut *self.cloud;
        cloud.client_free = cloud.client_free.max(cloud.now) + cloud.config.request_seconds;
        self.events.add(cloud.client_free, Event::Arrived(at));
    }

    fn request(&self, at: At) -> VirtualRequest {
        self.work[at.work].requests[at.request]
    }

    fn arrived(&mut self, at: At) {
        let cloud = &mut *self.cloud;
        let network = &cloud.config.network;
        let latency = network.latency.sample(network.seed, cloud.number);
        let latency = latency.as_secs_f64();
        cloud.number += 1;
        if let VirtualRequest::Call { .. } = self.request(at) {
            self.without_instance.push_back((at, latency));
            self.start_calls();
            return;
        }
        self.outcome.requests += 1;
        let now = self.cloud.now;
        let tokens = self.cloud.tokens.as_mut();
        let admitted = tokens.map_or(now, |tokens| tokens.admit(now));
        self.events.add(admitted + latency, Event::FirstByte(at));
    }

    /// Starts the calls that wait, as far as there are instances.
    fn start_calls(&mut self) {
        while let Some((at, latency)) = self.without_instance.front().copied() {
            let (Some(function), Some(instances)) =
                (&self.cloud.config.function, &mut self.cloud.instances)
            else {
                return;
            };
            let Some(cold) = instances.take(self.cloud.now) else {
                return;
            };
            self.without_instance.pop_front();
            if let VirtualRequest::Call {
                read,
                reads,
                answer,
            } = self.request(at)
            {
                let busy = busy_seconds(function, read, cold);
                let paid = busy + function.streamed_seconds(answer);
                let outcome = &mut self.outcome;
                outcome.calls += 1;
                outcome.cold_starts += u64::from(cold);
                outcome.reads += reads;
                outcome.function_seconds += paid;
                outcome.gb_seconds += paid * function.gigabytes();
                let first = self.cloud.now + latency + busy;
                self.events.add(first, Event::FirstByte(at));
            }
        }
    }

    fn first_byte(&mut self, at: At) {
        let now = self.cloud.now;
        match self.request(at) {
            VirtualRequest::Get { bytes } => {
                self.outcome.bytes += bytes;
                self.flows.start(now, bytes, (at, now));
            }
            VirtualRequest::Call { answer, .. } => {
                if let Some(instances) = &mut self.cloud.instances {
                    instances.release(now);
                }
                let function = self.cloud.config.function.as_ref();
                let streamed = function.map_or(0.0, |f| f.streamed_seconds(answer));
                self.outcome.bytes += answer;
                self.flows.start(now, answer, (at, now + streamed));
                self.start_calls();
            }
        }
    }

    fn done(&mut self, at: At) {
        self.window(at).free += 1;
        self.left[at.work] -= 1;
        if self.left[at.work] == 0 {
            self.under_way -= 1;
        }
    }
}

/// Seconds that an instance is busy with a call.
fn busy_seconds(function: &FunctionModel, read: u64, cold: bool) -> f64 {
    let start = if cold {
        function.cold_millis / 1e3
    } else {
        0.0
    };
    start + function.compute_seconds(read)
}
