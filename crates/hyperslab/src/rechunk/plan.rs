//! Which boxes a rechunk moves at a time, in one pass or in two. Pure: no I/O.
//!
//! One pass carries boxes of whole destination objects. It is right as long as boxes that fit into
//! memory touch no unit of the source (what is decoded by itself) more than twice. Otherwise a first
//! pass carries slabs of whole source units into raw cells at a third place, from which any box can
//! be read without reading more than it, and a second pass carries boxes from there. One pass is
//! always the cheaper one where it is possible: reading the source twice costs one more read of its
//! encoded bytes, two passes a write and a read of all cells.
//!
//! Invariants: what is in flight at a time has at most [`Problem::room`] bytes; no unit is read more
//! than twice (but for [`Problem::may_stage`]); a destination object lies in one box; slabs cut no
//! unit.

use serde::{Deserialize, Serialize};

/// Shorter runs of a raw chunk are not worth reading by themselves.
const LEAST_RUN: u64 = 16 << 10;
/// Larger boxes are no faster, and are more to do again after a kill.
const MOST_BYTES: u64 = 256 << 20;
/// Boxes for each slot, at least, if they can be so small.
const LEAST_TURNS: u64 = 4;
/// Bytes of memory per byte of a slab: short rows are brought together in a copy.
pub(super) const SLAB_COPIES: u64 = 2;
/// Dimensions with at most so many units are looked at unit by unit.
const COUNTED: u64 = 1024;

/// What is to be moved, and within which bounds.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    /// The array's shape.
    pub(crate) shape: Vec<u64>,
    /// Bytes of a cell.
    pub(crate) cell: u64,
    /// Sides of what is decoded by itself of the source.
    pub(crate) unit: Vec<u64>,
    /// Its dimensions as they are stored, outermost first.
    pub(crate) stored: Vec<usize>,
    /// Parts of a unit can be read at the price of those parts.
    pub(crate) ranged: bool,
    /// Sides of what one object of the destination holds.
    pub(crate) object: Vec<u64>,
    /// Cells can be kept at a third place. Strings cannot: they move in one pass, however often that
    /// reads the source.
    pub(crate) may_stage: bool,
    /// Bytes of memory per byte of a box that is read from the third place.
    pub(crate) staged_copies: u64,
    /// Bytes that boxes may take.
    pub(crate) room: u64,
    /// Boxes in flight at a time, if they fit: while one is read another is written.
    pub(crate) slots: u64,
}

/// Boxes of one pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stage {
    /// Their sides.
    pub(crate) sides: Vec<u64>,
    /// How many are in flight at a time.
    pub(crate) slots: u64,
}

/// How an array is moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Plan {
    /// Boxes of whole destination objects, straight from the source.
    Direct(Stage),
    /// Slabs of whole source units to a third place, then boxes from there.
    Staged {
        /// The first pass.
        slabs: Stage,
        /// The second.
        boxes: Stage,
    },
}

impl Plan {
    /// Passes over the array.
    pub(crate) fn passes(&self) -> usize {
        match self {
            Plan::Direct(_) => 1,
            Plan::Staged { .. } => 2,
        }
    }

    /// The boxes that are written to the destination.
    pub(crate) fn boxes(&self) -> &Stage {
        match self {
            Plan::Direct(boxes) | Plan::Staged { boxes, .. } => boxes,
        }
    }
}

impl Problem {
    /// Chooses the boxes; the error is how much room the least demanding plan needs.
    pub(crate) fn plan(&self) -> Result<Plan, u64> {
        let candidates = self.direct();
        let fitting = candidates
            .iter()
            .filter(|sides| self.bytes(sides) <= self.room);
        if let Some(best) = fitting.min_by_key(|sides| (self.reads(sides), self.bytes(sides))) {
            return Ok(Plan::Direct(self.stage(best, 1, &self.eager_dims(best))));
        }
        let (unit, object) = (self.clip(&self.unit), self.clip(&self.object));
        if !self.may_stage {
            return match self.bytes(&object) <= self.room {
                true => {
                    let dims = self.eager_dims(&object);
                    Ok(Plan::Direct(self.stage(&object, 1, &dims)))
                }
                false => Err(self.bytes(&object)),
            };
        }
        let staged = (self.bytes(&unit).saturating_mul(SLAB_COPIES))
            .max(self.bytes(&object).saturating_mul(self.staged_copies));
        if staged <= self.room {
            return Ok(self.staged(unit, object));
        }
        let direct = candidates.iter().map(|sides| self.bytes(sides));
        Err(direct.min().unwrap_or(u64::MAX).min(staged))
    }

    /// Boxes of whole units, for passing over the source by itself; `None` if one does not fit.
    pub(crate) fn scan(&self, unit: &[u64]) -> Option<Stage> {
        let unit = self.clip(unit);
        let dims: Vec<usize> = (0..unit.len()).rev().collect();
        (self.bytes(&unit) <= self.room).then(|| self.stage(&unit, 1, &dims))
    }

    /// How often the source unit that is read most is read, with boxes of these sides.
    pub(crate) fn reads(&self, sides: &[u64]) -> u64 {
        if self.reads_parts(sides) {
            return 1;
        }
        (0..sides.len())
            .map(|dim| touches(self.shape[dim], self.unit[dim], sides[dim]))
            .fold(1, u64::saturating_mul)
    }

    /// Bytes of a box.
    pub(crate) fn bytes(&self, sides: &[u64]) -> u64 {
        sides
            .iter()
            .zip(&self.shape)
            .map(|(side, whole)| *side.min(whole).max(&1))
            .fold(self.cell, u64::saturating_mul)
    }

    fn clip(&self, sides: &[u64]) -> Vec<u64> {
        let each = sides.iter().zip(&self.shape);
        each.map(|(side, whole)| *side.min(whole).max(&1)).collect()
    }

    /// The smallest boxes of each kind that read no unit more than twice.
    fn direct(&self) -> Vec<Vec<u64>> {
        let rank = self.shape.len();
        let aligned: Vec<u64> = (0..rank).map(|dim| self.aligned(dim)).collect();
        let mut found = vec![aligned.clone()];
        for dim in 0..rank {
            let mut sides = aligned.clone();
            sides[dim] = self.halved(dim);
            found.push(sides);
        }
        if self.ranged {
            // The more of the last stored dimensions are whole, the longer are the runs.
            for whole in 0..rank {
                let mut sides = self.clip(&self.object);
                for dim in self.stored.iter().rev().take(whole) {
                    sides[*dim] = aligned[*dim];
                }
                if self.reads_parts(&sides) {
                    found.push(sides);
                    break;
                }
            }
        }
        found
    }

    /// The shortest side that cuts no unit in two.
    fn aligned(&self, dim: usize) -> u64 {
        lcm(self.object[dim], self.unit[dim]).min(self.shape[dim].max(1))
    }

    /// The shortest side that cuts no unit in three.
    fn halved(&self, dim: usize) -> u64 {
        let (whole, unit, object) = (self.shape[dim], self.unit[dim].max(1), self.object[dim]);
        let object = object.max(1);
        let enough = unit.div_ceil(object).max(1);
        // Below half a unit only a short array can do with two boxes for each.
        let from = match whole.div_ceil(unit) <= COUNTED && enough <= COUNTED {
            true => 1,
            false => (unit / 2).div_ceil(object).clamp(1, enough),
        };
        let found = (from..enough)
            .take(1 << 16)
            .find(|many| touches(whole, unit, many.saturating_mul(object)) <= 2);
        let side = found.unwrap_or(enough).saturating_mul(object);
        side.min(whole.max(1))
    }

    /// True if what boxes cut out of units lies there in runs that are worth reading one by one.
    fn reads_parts(&self, sides: &[u64]) -> bool {
        if !self.ranged {
            return false;
        }
        let mut run = self.cell;
        for dim in self.stored.iter().rev() {
            let unit = self.unit[*dim].min(self.shape[*dim]).max(1);
            run = run.saturating_mul(unit.min(sides[*dim]));
            if touches(self.shape[*dim], self.unit[*dim], sides[*dim]) > 1 {
                return run >= LEAST_RUN;
            }
        }
        true
    }

    /// Dimensions in the order in which boxes had better become longer: those along which units are
    /// read twice, then the source's own, innermost first.
    fn eager_dims(&self, sides: &[u64]) -> Vec<usize> {
        let mut dims: Vec<usize> = self.stored.iter().rev().copied().collect();
        dims.sort_by_key(|dim| touches(self.shape[*dim], self.unit[*dim], sides[*dim]) < 2);
        dims
    }

    /// A stage of boxes that are whole numbers of `least`, each taking `copies` times its bytes.
    fn stage(&self, least: &[u64], copies: u64, dims: &[usize]) -> Stage {
        let (slots, limit) = self.limit(least, copies);
        let whole = self.shape.clone();
        let sides = self.grow(least.to_vec(), least, &whole, limit, dims);
        Stage { sides, slots }
    }

    /// How many boxes of at least `least` are in flight at a time, and how large each may be.
    fn limit(&self, least: &[u64], copies: u64) -> (u64, u64) {
        let room = self.room / copies.max(1);
        let slots = (room / self.bytes(least).max(1)).clamp(1, self.slots.max(1));
        // One box is read while another is written only if there are several.
        let several = self.bytes(&self.shape) / (slots * LEAST_TURNS);
        (slots, (room / slots).min(MOST_BYTES).min(several))
    }

    /// Makes boxes longer along `dims`, in whole numbers of `step` and up to `most`, with boxes as
    /// equal as that allows.
    fn grow(
        &self,
        mut sides: Vec<u64>,
        step: &[u64],
        most: &[u64],
        limit: u64,
        dims: &[usize],
    ) -> Vec<u64> {
        for dim in dims.iter().copied() {
            let step = step[dim].max(1);
            let slice = self.bytes(&sides) / sides[dim].min(self.shape[dim]).max(1);
            let fitting = limit / slice.saturating_mul(step).max(1);
            let wanted = most[dim].min(self.shape[dim]).div_ceil(step).max(1);
            let whole = self.shape[dim].div_ceil(step).max(1);
            let many = fitting.clamp(1, wanted);
            let equal = match many == wanted {
                true => many,
                false => whole.div_ceil(whole.div_ceil(many)),
            };
            sides[dim] = sides[dim].max(equal.saturating_mul(step).min(self.shape[dim].max(1)));
        }
        sides
    }

    /// Slabs and boxes whose common parts are as large as memory allows, since each is read by
    /// itself: both grow first to where the other is longer.
    fn staged(&self, unit: Vec<u64>, object: Vec<u64>) -> Plan {
        let dims: Vec<usize> = (0..unit.len()).rev().collect();
        let shorter = |a: &[u64], b: &[u64]| -> Vec<usize> {
            let dims = dims.iter().copied();
            dims.filter(|dim| a[*dim] < b[*dim]).collect()
        };
        let (box_slots, box_limit) = self.limit(&object, self.staged_copies);
        let (slab_slots, slab_limit) = self.limit(&unit, SLAB_COPIES);
        let towards = shorter(&object, &unit);
        let boxes = self.grow(object.clone(), &object, &unit, box_limit, &towards);
        let towards = shorter(&unit, &boxes);
        let slabs = self.grow(unit.clone(), &unit, &boxes, slab_limit, &towards);
        let whole = self.shape.clone();
        let boxes = self.grow(boxes, &object, &whole, box_limit, &dims);
        let slabs = self.grow(slabs, &unit, &whole, slab_limit, &dims);
        Plan::Staged {
            slabs: Stage {
                sides: slabs,
                slots: slab_slots,
            },
            boxes: Stage {
                sides: boxes,
                slots: box_slots,
            },
        }
    }
}

/// How many boxes of this side the unit lies in that lies in most of them. Exact, but for long
/// dimensions, where it is at most one more than that.
fn touches(whole: u64, unit: u64, side: u64) -> u64 {
    let (unit, side) = (unit.max(1), side.max(1));
    if side >= whole || side.is_multiple_of(unit) {
        return 1;
    }
    let units = whole.div_ceil(unit);
    if units <= COUNTED {
        let boxes = |i: u64| {
            let last = (i + 1).saturating_mul(unit).min(whole) - 1;
            last / side - i * unit / side + 1
        };
        return (0..units).map(boxes).max().unwrap_or(1);
    }
    // The unit that starts furthest into a box; starts are multiples of the common divisor.
    let common = gcd(unit, side);
    (side - common).saturating_add(unit - 1) / side + 1
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

/// The least common multiple.
pub(crate) fn lcm(a: u64, b: u64) -> u64 {
    let (a, b) = (a.max(1), b.max(1));
    (a / gcd(a, b)).saturating_mul(b)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn problem(shape: &[u64], unit: &[u64], object: &[u64], room: u64) -> Problem {
        Problem {
            shape: shape.to_vec(),
            cell: 1,
            unit: unit.to_vec(),
            stored: (0..shape.len()).collect(),
            ranged: false,
            object: object.to_vec(),
            may_stage: true,
            staged_copies: 1,
            room,
            slots: 2,
        }
    }

    fn split(shape: &[u64], sides: &[u64]) -> Vec<hyperslab_index::Region> {
        let shape = hyperslab_index::Shape::new(shape.iter().copied()).unwrap();
        hyperslab_index::Region::whole(&shape)
            .split(sides)
            .collect()
    }

    /// The naive model: how many of `boxes` the block lies in that lies in most of them.
    fn most_touched(shape: &[u64], block: &[u64], boxes: &[u64]) -> u64 {
        let boxes = split(shape, boxes);
        let in_boxes = |block: &hyperslab_index::Region| {
            let hit = boxes.iter().filter(|b| b.intersect(block).is_some());
            hit.count() as u64
        };
        split(shape, block).iter().map(in_boxes).max().unwrap_or(0)
    }

    /// All multiples of the destination's objects, up to the whole array.
    fn all_boxes(p: &Problem) -> Vec<Vec<u64>> {
        let mut all = vec![Vec::new()];
        for (object, whole) in p.object.iter().zip(&p.shape) {
            let longer = |sides: &Vec<u64>| {
                let each = (1..=whole.div_ceil(*object)).map(|k| (k * object).min(*whole));
                let with = |side| sides.iter().copied().chain([side]).collect::<Vec<u64>>();
                each.map(with).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(longer).collect();
        }
        all
    }

    fn dimension() -> impl Strategy<Value = (u64, u64, u64)> {
        (1u64..=14, 1u64..=16, 1u64..=16)
    }

    proptest! {
        #[test]
        fn plans_keep_their_promises(
            dims in prop::collection::vec(dimension(), 0..=3),
            room in 1u64..600,
            slots in 1u64..4,
            copies in 1u64..3,
        ) {
            let pick = |f: fn(&(u64, u64, u64)) -> u64| dims.iter().map(f).collect::<Vec<_>>();
            let mut p = problem(&pick(|d| d.0), &pick(|d| d.1), &pick(|d| d.2), room);
            (p.slots, p.staged_copies) = (slots, copies);
            let possible = all_boxes(&p).into_iter().any(|sides| {
                p.bytes(&sides) <= room && most_touched(&p.shape, &p.unit, &sides) <= 2
            });
            match p.plan() {
                Ok(Plan::Direct(stage)) => {
                    prop_assert!(stage.slots * p.bytes(&stage.sides) <= room);
                    prop_assert!(most_touched(&p.shape, &p.unit, &stage.sides) <= 2);
                    prop_assert_eq!(most_touched(&p.shape, &p.object, &stage.sides), 1);
                }
                Ok(Plan::Staged { slabs, boxes }) => {
                    prop_assert!(!possible, "one pass would do");
                    prop_assert!(slabs.slots * 2 * p.bytes(&slabs.sides) <= room);
                    prop_assert!(boxes.slots * copies * p.bytes(&boxes.sides) <= room);
                    prop_assert_eq!(most_touched(&p.shape, &p.unit, &slabs.sides), 1);
                    prop_assert_eq!(most_touched(&p.shape, &p.object, &boxes.sides), 1);
                }
                Err(needed) => {
                    prop_assert!(!possible);
                    prop_assert!(needed > room);
                    // What it asks for is enough, and nothing less is.
                    p.room = needed;
                    prop_assert!(p.plan().is_ok());
                    p.room = needed - 1;
                    prop_assert!(p.plan().is_err());
                }
            }
        }

        #[test]
        fn counted_and_computed_touches_agree(unit in 1u64..60, side in 1u64..60) {
            let long = 100_000;
            let counted = (0..2000u64)
                .map(|i| ((i + 1) * unit - 1) / side - i * unit / side + 1)
                .max()
                .unwrap();
            prop_assert_eq!(touches(long, unit, side), counted);
        }
    }

    /// 4 GiB of slices, to become columns.
    fn slices_to_columns() -> Problem {
        let (slice, column) = ([1, 1024, 1024], [1024, 32, 32]);
        Problem {
            cell: 4,
            ..problem(&[1024; 3], &slice, &column, 390 << 20)
        }
    }

    #[test]
    fn raw_chunks_on_disk_are_read_in_parts() {
        let mut p = slices_to_columns();
        p.ranged = true;
        let Ok(Plan::Direct(stage)) = p.plan() else {
            panic!("two passes");
        };
        assert_eq!(stage.sides, [1024, 32, 1024]);
        assert_eq!((stage.slots, p.reads(&stage.sides)), (2, 1));
    }

    #[test]
    fn compressed_slices_become_columns_in_two_passes() {
        let p = slices_to_columns();
        let Ok(Plan::Staged { slabs, boxes }) = p.plan() else {
            panic!("one pass");
        };
        assert_eq!(boxes.sides, [1024, 32, 1024]);
        assert_eq!(slabs.sides, [24, 1024, 1024]);
        assert_eq!((slabs.slots, boxes.slots), (2, 2));
    }

    #[test]
    fn too_little_memory_says_what_is_needed() {
        let p = problem(&[100, 100], &[100, 1], &[1, 100], 50);
        assert_eq!(p.plan(), Err(200));
        let strings = Problem {
            may_stage: false,
            ..p
        };
        assert_eq!(strings.plan(), Err(100));
    }
}
