//! B-trees of both versions, walked level by level.
//!
//! Sections III.A of the file format. All nodes of a level are asked for before any of them is
//! parsed, so that a level is missed at once and a tree takes as many round trips as it has levels.

use std::collections::HashSet;

use bytes::Bytes;

use super::checksum;
use super::cursor::Cursor;
use super::header::{Context, split_sum};
use crate::{Error, Result};

/// Records of one tree, at most: 2³² chunks of 4 KiB are 16 TiB.
const MOST_RECORDS: u64 = 1 << 32;
/// Levels of a tree, at most.
const DEEPEST: u16 = 64;

/// All bytes at these places, or a miss of all that are not here.
pub(crate) fn all(context: &Context<'_>, places: &[(u64, u64)]) -> Result<Vec<Bytes>> {
    let mut got = Vec::with_capacity(places.len());
    let mut failed = None;
    for (address, length) in places {
        match context.blocks.get(*address, *length) {
            Ok(bytes) => got.push(bytes),
            Err(e) => failed = failed.or(Some(e)),
        }
    }
    failed.map_or(Ok(got), Err)
}

/// A leaf entry of a tree of version 1: its key, and the address of its child.
pub(crate) type Leaf = (Bytes, u64);

/// The leaves of a tree of version 1 of this type (0 groups, 1 chunks), in the order of their keys.
pub(crate) fn leaves_1(
    context: &Context<'_>,
    root: u64,
    kind: u8,
    key_bytes: usize,
) -> Result<Vec<Leaf>> {
    let offset = u64::from(context.sizes.offset);
    let head = 8 + 2 * offset;
    let mut seen = HashSet::from([root]);
    let mut level_nodes = vec![root];
    let mut expected: Option<u8> = None;
    loop {
        let heads: Vec<(u64, u64)> = level_nodes.iter().map(|node| (*node, head)).collect();
        let mut places = Vec::with_capacity(level_nodes.len());
        let mut level = 0;
        for (bytes, node) in all(context, &heads)?.iter().zip(&level_nodes) {
            let mut cursor = context.cursor(bytes);
            cursor.signature(b"TREE", "node of a B-tree")?;
            if cursor.u8()? != kind {
                return Err(Error::data("a B-tree is of another type than it should be"));
            }
            level = cursor.u8()?;
            if expected.is_some_and(|expected| expected != level) {
                return Err(Error::data("a B-tree has a node of the wrong level"));
            }
            let used = u64::from(cursor.u16()?);
            // One key more than there are children.
            places.push((
                node + head,
                used * (key_bytes as u64 + offset) + key_bytes as u64,
            ));
            expected = Some(level);
        }
        let mut leaves = Vec::new();
        for bytes in all(context, &places)? {
            let mut at = 0;
            while at + key_bytes + offset as usize <= bytes.len() {
                let key = bytes.slice(at..at + key_bytes);
                let child = context
                    .cursor(&bytes[at + key_bytes..])
                    .defined("a child")?;
                leaves.push((key, child));
                at += key_bytes + offset as usize;
            }
        }
        if level == 0 {
            return Ok(leaves);
        }
        expected = Some(level - 1);
        level_nodes = leaves.into_iter().map(|(_, child)| child).collect();
        if !level_nodes.iter().all(|node| seen.insert(*node)) {
            return Err(Error::data("a B-tree leads to itself"));
        }
        if level_nodes.is_empty() {
            return Ok(Vec::new());
        }
    }
}

/// A tree of version 2.
struct Tree2 {
    kind: u8,
    node_bytes: u64,
    record_bytes: usize,
    depth: u16,
    root: Option<u64>,
    root_records: u64,
    records: u64,
}

impl Tree2 {
    fn parse(context: &Context<'_>, address: u64) -> Result<Tree2> {
        let sizes = context.sizes;
        let length = 22 + u64::from(sizes.offset) + u64::from(sizes.length);
        let bytes = context.blocks.get(address, length)?;
        let (summed, sum) = split_sum(&bytes)?;
        let mut cursor = context.cursor(summed);
        cursor.signature(b"BTHD", "header of a B-tree")?;
        checksum(summed, sum, "header of a B-tree")?;
        cursor.version(0..=0, "B-tree")?;
        let tree = Tree2 {
            kind: cursor.u8()?,
            node_bytes: u64::from(cursor.u32()?),
            record_bytes: usize::from(cursor.u16()?),
            depth: cursor.u16()?,
            root: {
                cursor.skip(2)?;
                cursor.address()?
            },
            root_records: u64::from(cursor.u16()?),
            records: cursor.length()?,
        };
        if tree.records > MOST_RECORDS || tree.depth > DEEPEST || tree.record_bytes == 0 {
            return Err(Error::data("a B-tree is larger than any file"));
        }
        Ok(tree)
    }

    /// Most records of a leaf, and for each level above it: most records of a node, most records of
    /// all below it, and how many bytes the numbers of records take.
    fn capacities(&self, offset: u64) -> Vec<Capacity> {
        const OVERHEAD: u64 = 10;
        let room = self.node_bytes.saturating_sub(OVERHEAD);
        let record = self.record_bytes as u64;
        let leaf = room / record;
        let count_bytes = bytes_for(leaf);
        let mut levels = vec![Capacity {
            records: leaf,
            all: leaf,
            all_bytes: 0,
        }];
        for _ in 0..self.depth {
            let below = &levels[levels.len() - 1];
            let pointer = offset + count_bytes + below.all_bytes;
            let records = room.saturating_sub(pointer) / (record + pointer);
            let all = (records + 1)
                .saturating_mul(below.all)
                .saturating_add(records);
            levels.push(Capacity {
                records,
                all,
                all_bytes: bytes_for(all),
            });
        }
        levels
    }
}

struct Capacity {
    records: u64,
    all: u64,
    /// Bytes of a number of all records below: none at the leaves.
    all_bytes: u64,
}

fn bytes_for(value: u64) -> u64 {
    u64::from(64 - value.leading_zeros()).div_ceil(8).max(1)
}

/// All records of a tree of version 2 and the type of its records, in the order of its keys within
/// each level.
pub(crate) fn records_2(context: &Context<'_>, address: u64) -> Result<(u8, Vec<Bytes>)> {
    let tree = Tree2::parse(context, address)?;
    let offset = u64::from(context.sizes.offset);
    let capacities = tree.capacities(offset);
    let count_bytes = bytes_for(capacities[0].records);
    let mut records = Vec::new();
    let mut nodes: Vec<(u64, u64)> = tree
        .root
        .map(|root| (root, tree.root_records))
        .into_iter()
        .collect();
    let mut seen = HashSet::new();
    for depth in (0..=tree.depth).rev() {
        if !nodes.iter().all(|(node, _)| seen.insert(*node)) {
            return Err(Error::data("a B-tree leads to itself"));
        }
        let places: Vec<(u64, u64)> = nodes.iter().map(|(a, _)| (*a, tree.node_bytes)).collect();
        let mut children = Vec::new();
        for (bytes, (_, count)) in all(context, &places)?.into_iter().zip(&nodes) {
            if *count > capacities[usize::from(depth)].records {
                return Err(Error::data("a node of a B-tree has too many records"));
            }
            let mut cursor = context.cursor(&bytes);
            let signature = if depth == 0 { b"BTLF" } else { b"BTIN" };
            cursor.signature(signature, "node of a B-tree")?;
            cursor.version(0..=0, "B-tree")?;
            if cursor.u8()? != tree.kind {
                return Err(Error::data("a B-tree is of another type than it should be"));
            }
            for _ in 0..*count {
                let at = cursor.position();
                cursor.skip(tree.record_bytes)?;
                records.push(bytes.slice(at..at + tree.record_bytes));
            }
            if depth > 0 {
                let all_bytes = capacities[usize::from(depth) - 1].all_bytes;
                for _ in 0..=*count {
                    let child = cursor.defined("a child")?;
                    let count = cursor.uint(count_bytes as usize)?;
                    cursor.skip(all_bytes as usize)?;
                    children.push((child, count));
                }
            }
            verify(&bytes, &mut cursor)?;
        }
        nodes = children;
    }
    match records.len() as u64 == tree.records {
        true => Ok((tree.kind, records)),
        false => Err(Error::data(
            "a B-tree has another number of records than it says",
        )),
    }
}

fn verify(bytes: &[u8], cursor: &mut Cursor<'_>) -> Result<()> {
    let end = cursor.position();
    checksum(&bytes[..end], cursor.u32()?, "node of a B-tree")
}
