//! Whether the index of a shard is worth a round trip of its own.
//!
//! Before anything of a shard is known there are two ways: read all of it, or ask for its index first
//! and then plan what is wanted. The second costs a request for each shard and one round trip for
//! all of them together, so it is decided for all shards of a query at once. Where inner chunks lie
//! is guessed: in order, and all of one size.

use crate::{Load, Method, Mode, Model, Object, Query, Result, plan};

/// A shard whose index is not known yet.
#[derive(Debug, Clone)]
pub struct Unlocated {
    /// What is wanted, as far as it is known: all of it.
    pub whole: Object,
    /// What is wanted, as the index would probably tell.
    pub located: Object,
    /// Bytes of the index.
    pub index: u64,
}

impl Unlocated {
    /// Bytes that need not be read if the index is known.
    fn saved(&self) -> u64 {
        let wanted: u64 = self.located.runs.iter().map(|run| run.len()).sum();
        self.whole.size.saturating_sub(wanted + self.index)
    }
}

/// Queries with more runs are not planned for more than one set of shards.
const MANY_RUNS: usize = 20_000;

/// Which shards had better be located before the query is planned.
pub fn locate(shards: &[Unlocated], model: &Model, mode: Mode) -> Result<Vec<bool>> {
    let none = vec![false; shards.len()];
    if mode == Mode::Get || shards.is_empty() {
        return Ok(none);
    }
    let runs: usize = shards.iter().map(|shard| shard.located.runs.len()).sum();
    // Those that are worth most, by the share of bytes that it saves.
    let shares: &[u64] = if runs <= MANY_RUNS { &[0, 4, 2] } else { &[0] };
    let mut best = (cost(shards, &none, model, mode)?, none);
    for share in shares {
        let chosen: Vec<bool> = shards
            .iter()
            .map(|shard| match share {
                0 => shard.saved() > 0,
                _ => shard.saved() >= shard.whole.size / share,
            })
            .collect();
        if chosen.contains(&true) && chosen != best.1 {
            let cost = cost(shards, &chosen, model, mode)?;
            if cost < best.0 {
                best = (cost, chosen);
            }
        }
    }
    Ok(best.1)
}

/// What reading all shards costs, indexes included.
fn cost(shards: &[Unlocated], located: &[bool], model: &Model, mode: Mode) -> Result<f64> {
    let objects = shards.iter().zip(located).map(|(shard, located)| {
        let known = if *located {
            &shard.located
        } else {
            &shard.whole
        };
        known.clone()
    });
    let query = Query::new(objects.collect())?;
    let answer = if located.contains(&true) {
        plan(&query, model, mode).estimate
    } else {
        // Objects of unknown size are read whole, whatever the planner is.
        let methods = vec![Method::Get; shards.len()];
        let load = Load::of(&query, model, &methods, &[]);
        return Ok(model.cost(&load));
    };
    let mut indexes = Load::default();
    for (shard, _) in shards.iter().zip(located).filter(|(_, located)| **located) {
        indexes.add_request(model, shard.index);
    }
    Ok(model.weigh(
        answer.seconds + model.seconds(&indexes),
        answer.dollars + model.dollars(&indexes),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Place, PriceBook, Profile, Run};

    fn model(phi: f64) -> Model {
        let profile = Profile::built_in("aws").unwrap();
        let book = PriceBook::built_in("aws").unwrap();
        Model::new(&profile, &book, Place::Internet, phi).unwrap()
    }

    /// A shard of 64 inner chunks, of which the first few are wanted.
    fn shard(inner: u64, wanted: u64) -> Unlocated {
        let runs = (0..wanted).map(|i| Run::plain(i * inner..(i + 1) * inner));
        let mut located = Object::raw(64 * inner + 1028, runs.collect());
        located.grain = 0;
        let mut whole = Object::encoded(64 * inner + 1028, wanted * inner);
        whole.splittable = false;
        Unlocated {
            whole,
            located,
            index: 1028,
        }
    }

    #[test]
    fn large_shards_are_located_and_small_ones_are_not() {
        let decide = |inner, wanted, phi| {
            let shards = [shard(inner, wanted), shard(inner, wanted)];
            let chosen = locate(&shards, &model(phi), Mode::Global).unwrap();
            assert_eq!(chosen[0], chosen[1]);
            chosen[0]
        };
        assert!(decide(1 << 20, 1, 0.0));
        assert!(!decide(1 << 10, 1, 0.0));
        // All of it is wanted.
        assert!(!decide(1 << 20, 64, 0.0));
        // A request costs less than 64 KiB over the internet.
        assert!(decide(1 << 10, 1, f64::INFINITY));
        assert!(!decide(1, 1, f64::INFINITY));
        assert!(!locate(&[shard(1 << 20, 1)], &model(0.0), Mode::Get).unwrap()[0]);
        assert!(locate(&[], &model(0.0), Mode::Global).unwrap().is_empty());
    }

    #[test]
    fn one_shard_does_not_make_all_wait() {
        // One of many shards would save a little, and cost all of them a round trip.
        let mut shards = vec![shard(1 << 10, 64); 30];
        shards.push(shard(1 << 10, 8));
        let chosen = locate(&shards, &model(0.0), Mode::Global).unwrap();
        assert!(!chosen.contains(&true));
    }
}
