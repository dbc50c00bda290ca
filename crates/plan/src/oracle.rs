//! Exhaustive search, and random instances: for tests and benchmarks of the planners.
//!
//! The naive model of planning: every grouping of every object's runs, every number of parts and
//! of calls, all combinations over the objects.

use crate::division::divide;
use crate::{
    BandwidthPoint, Fees, FunctionProfile, Load, Model, NetworkProfile, Object, Profile, Query,
    Result, Run,
};

/// The lowest cost of all plans in which a range has at most `max_parts` parts and an object at
/// most `max_calls` calls. Exponential: for a dozen runs.
pub fn exhaustive(query: &Query, model: &Model, max_parts: u64, max_calls: u64) -> f64 {
    let choices: Vec<Vec<Load>> = query
        .objects()
        .iter()
        .map(|object| object_loads(object, model, max_parts, max_calls))
        .collect();
    let mut best = f64::INFINITY;
    combine(&choices, Load::default(), model, &mut best);
    best
}

fn combine(choices: &[Vec<Load>], sum: Load, model: &Model, best: &mut f64) {
    match choices.split_first() {
        None => *best = best.min(model.cost(&sum)),
        Some((first, rest)) => first
            .iter()
            .for_each(|load| combine(rest, sum.join(load), model, best)),
    }
}

fn object_loads(object: &Object, model: &Model, max_parts: u64, max_calls: u64) -> Vec<Load> {
    let mut whole = Load::default();
    whole.add_request(model, object.size);
    let mut out = vec![whole];
    groupings(object, model, max_parts, 0, Load::default(), &mut out);
    if object.function && model.function().is_some() {
        for count in 1..=max_calls {
            let calls = divide(object, count);
            if calls.iter().all(|call| model.allows(call)) {
                let mut load = Load::default();
                calls.iter().for_each(|call| load.add_call(model, call));
                out.push(load);
            }
        }
    }
    out
}

fn groupings(
    object: &Object,
    model: &Model,
    max_parts: u64,
    from: usize,
    sum: Load,
    out: &mut Vec<Load>,
) {
    if from == object.runs.len() {
        out.push(sum);
        return;
    }
    for to in from + 1..=object.runs.len() {
        let len = object.runs[to - 1].end - object.runs[from].start;
        let max_parts = if object.splittable {
            max_parts.min(len)
        } else {
            1
        };
        for parts in 1..=max_parts {
            let mut load = sum;
            for i in 0..parts {
                load.add_request(model, len * (i + 1) / parts - len * i / parts);
            }
            groupings(object, model, max_parts, to, load, out);
        }
    }
}

/// A stream of numbers that depends on its seed alone (SplitMix64).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.bits() % n.max(1)
    }

    /// A number between `low` and `high`, evenly on a logarithmic scale.
    pub fn scale(&mut self, low: f64, high: f64) -> f64 {
        let share = (self.bits() >> 11) as f64 / (1u64 << 53) as f64;
        low * (high / low).powf(share)
    }
}

/// A random network, function and φ.
pub fn random_model(random: &mut Random) -> Result<Model> {
    let connection = random.scale(1e6, 1e8);
    let full = [1, 4, 8, 32, 128][random.below(5) as usize];
    let peak = connection * f64::from(full) * random.scale(0.5, 1.0).min(1.0);
    let mut bandwidth = vec![BandwidthPoint {
        requests: 1,
        bytes_per_second: connection.min(peak),
    }];
    for (requests, bytes_per_second) in [(full, peak), (1024, peak)] {
        if requests > 1 {
            bandwidth.push(BandwidthPoint {
                requests,
                bytes_per_second,
            });
        }
    }
    let warm_seconds = random.scale(0.005, 0.3);
    let function = FunctionProfile {
        seconds_per_byte: random.scale(1e-9, 6e-8),
        warm_seconds,
        cold_seconds: warm_seconds + 1.0,
        cold_share: 0.0,
        memory_bytes: 1 << 30,
        max_answer_bytes: 6 << 20,
        stream_after_bytes: None,
        stream_bandwidth: None,
        max_seconds: 900.0,
        concurrency: 1000,
    };
    let profile = Profile {
        name: "random".into(),
        date: "2026-11".into(),
        source: "random".into(),
        network: NetworkProfile {
            latency_seconds: random.scale(0.0005, 0.15),
            latency_spread: if random.below(2) == 0 {
                0.0
            } else {
                random.scale(1e-4, 0.02)
            },
            request_seconds: if random.below(2) == 0 {
                0.0
            } else {
                random.scale(1e-5, 1e-3)
            },
            connection_bandwidth: connection,
            bandwidth,
            requests_per_second: None,
            window: [4, 16, 64, 256][random.below(4) as usize],
        },
        function: (random.below(3) > 0).then_some(function),
    };
    let fees = Fees {
        request: random.scale(1e-7, 1e-6),
        byte: if random.below(3) == 0 {
            0.0
        } else {
            random.scale(1e-11, 1.2e-10)
        },
        call: random.scale(1e-7, 5e-7),
        call_second: random.scale(1e-6, 3e-5),
    };
    let phi = match random.below(5) {
        0 => 0.0,
        1 => f64::INFINITY,
        _ => random.scale(1.0, 1e5),
    };
    Model::with_fees(&profile, fees, phi)
}

/// A random query of at most so many objects, with at most so many runs in all of them together.
pub fn random_query(random: &mut Random, max_objects: u64, max_runs: u64) -> Result<Query> {
    let count = 1 + random.below(max_objects);
    let mut left = max_runs.max(count) - count;
    let mut objects = Vec::new();
    for _ in 0..count {
        let extra = random.below(left + 1);
        left -= extra;
        let (run, gap) = (random.scale(4.0, 1e6), random.scale(4.0, 4e6));
        let regular = random.below(2) == 0;
        let mut at = random.below(1 << 20);
        let mut runs = Vec::new();
        for _ in 0..=extra {
            let mut vary = |x: f64| {
                let x = if regular {
                    x
                } else {
                    x * random.scale(0.1, 10.0)
                };
                (x as u64 / 4).max(1) * 4
            };
            let len = vary(run);
            runs.push(Run::plain(at..at + len));
            at += len + vary(gap);
        }
        let size = at + random.below(1 << 20);
        let mut object = if random.below(5) == 0 {
            Object::encoded(size, size / (1 + random.below(64)))
        } else {
            Object::raw(size, runs)
        };
        object.splittable = random.below(4) > 0;
        objects.push(object);
    }
    Query::new(objects)
}
