//! Which calls of the function travel as one request.

use crate::load::Bundle;
use crate::{Load, Model};

/// Packs objects into calls of at most so many, in order, as the function's limits allow.
pub(crate) struct Packing<'a> {
    alone: &'a [Bundle],
    most: usize,
    pub(crate) bundles: Vec<Vec<usize>>,
    /// What the last bundle asks for, and all bundles before it.
    last: Bundle,
    before: Load,
}

impl<'a> Packing<'a> {
    pub(crate) fn new(alone: &'a [Bundle], most: usize) -> Self {
        Packing {
            alone,
            most,
            bundles: Vec::new(),
            last: Bundle::default(),
            before: Load::default(),
        }
    }

    pub(crate) fn add(&mut self, model: &Model, i: usize) {
        let joined = self.last.join(&self.alone[i]);
        match self.bundles.last_mut() {
            Some(bundle) if bundle.len() < self.most && joined.is_allowed(model) => {
                bundle.push(i);
                self.last = joined;
            }
            _ => {
                if !self.bundles.is_empty() {
                    self.before.add_bundle(model, &self.last);
                }
                self.bundles.push(vec![i]);
                self.last = self.alone[i];
            }
        }
    }

    pub(crate) fn load(&self, model: &Model) -> Load {
        let mut load = self.before;
        if !self.bundles.is_empty() {
            load.add_bundle(model, &self.last);
        }
        load
    }
}
