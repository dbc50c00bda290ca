//! An open file: fetches what its parsers miss, and finds objects by their paths.
//!
//! Between the store and everything that asks about a file. Invariant: all bytes have the ETag that
//! the file had when it was opened; a file that changes is a `Conflict`.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use hyperslab_store::{Get, GetRange, StoreRef};

use super::blocks::{BLOCK, Blocks};
use super::header::{Context, SharedIndex};
use super::link::{self, Link, Target};
use super::scales::Groups;
use super::superblock::{self, Superblock};
use crate::{Error, ErrorKind, Result};

/// Bytes that are fetched before anything is known.
const FIRST: u64 = 4 * BLOCK;
/// Blocks this near to each other are fetched with what lies between.
const NEAR: u64 = 4 * BLOCK;
/// What is missed after many round trips probably goes on: so much more is fetched at most.
const MOST_AHEAD: u64 = 64 * BLOCK;
/// So many places are few enough that what is missed is probably one chain.
const FEW: usize = 4;
/// Requests for metadata at a time.
const CONCURRENT: usize = 128;
/// Bytes of a file's metadata that are kept between questions.
const MOST_KEPT: u64 = 256 << 20;
/// Links that are followed for one path.
const MOST_LINKS: usize = 64;

/// An HDF5 file.
#[derive(Debug)]
pub struct File {
    store: StoreRef,
    key: String,
    etag: Option<String>,
    blocks: Blocks,
    superblock: Superblock,
    shared: Vec<SharedIndex>,
    /// How far behind what is missed more is fetched.
    ahead: AtomicU64,
    pub(crate) groups: Groups,
}

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// To the object at this address.
    Object(u64),
    /// Into another file.
    Elsewhere {
        /// Its name.
        file: String,
        /// The path there.
        path: String,
    },
}

impl File {
    /// Opens the file at a key of a store: one request, if its first blocks tell where its root is.
    pub async fn open(store: &StoreRef, key: &str) -> Result<File> {
        let options = Get {
            range: Some(GetRange::Prefix(FIRST)),
            ..Get::default()
        };
        let got = store.get(key, options).await?;
        let size = got.meta.size;
        let etag = got.meta.etag.clone();
        let blocks = Blocks::new(size);
        let bytes = got.body.into_bytes()?;
        if (bytes.len() as u64) < FIRST.min(size) {
            return Err(
                Error::data(format!("{key}: the server sent less than was asked for"))
                    .with_hint("the server has to answer range requests"),
            );
        }
        blocks.insert(0..bytes.len() as u64, &bytes)?;
        let mut file = File {
            store: store.clone(),
            key: key.to_owned(),
            etag,
            blocks,
            superblock: Superblock::unknown(),
            shared: Vec::new(),
            ahead: AtomicU64::new(0),
            groups: Groups::default(),
        };
        let base = file.fetching(|file| superblock::find(&file.blocks)).await?;
        file.blocks.set_base(base);
        file.superblock = file
            .fetching(|file| superblock::parse(&file.blocks))
            .await?;
        if let Some(extension) = file.superblock.extension {
            file.shared = file
                .fetching(|file| SharedIndex::all(&file.context(), extension))
                .await?;
        }
        Ok(file)
    }

    pub(crate) fn context(&self) -> Context<'_> {
        Context {
            blocks: &self.blocks,
            sizes: self.superblock.sizes,
            shared: &self.shared,
        }
    }

    pub(crate) fn root(&self) -> u64 {
        self.superblock.root
    }

    /// Where an address is in the object.
    pub(crate) fn place(&self, address: u64) -> u64 {
        address.saturating_add(self.blocks.base())
    }

    /// The file's key in its store.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Bytes of the whole file.
    pub fn size(&self) -> u64 {
        self.blocks.file_size()
    }

    /// The ETag that the file had when it was opened.
    pub fn etag(&self) -> Option<&str> {
        self.etag.as_deref()
    }

    /// What is known of the file's metadata, if there is more than when this was last asked: enough
    /// to open it again without a request.
    pub fn knowledge(&self) -> Option<Vec<u8>> {
        let blocks = self.blocks.fresh()?;
        let mut out = Vec::new();
        for (block, bytes) in blocks {
            out.extend_from_slice(&block.to_le_bytes());
            out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
            out.extend_from_slice(&bytes);
        }
        Some(out)
    }

    /// Takes over what was known of the same state of the file before; what does not fit is ignored.
    pub fn remember(&self, knowledge: &[u8]) {
        let mut blocks = Vec::new();
        let mut left = knowledge;
        while let Some((block, rest)) = left.split_first_chunk::<8>() {
            let Some((length, rest)) = rest.split_first_chunk::<8>() else {
                break;
            };
            let length = u64::from_le_bytes(*length) as usize;
            let Some((bytes, rest)) = rest.split_at_checked(length) else {
                break;
            };
            blocks.push((u64::from_le_bytes(*block), Bytes::copy_from_slice(bytes)));
            left = rest;
        }
        self.blocks.restore(blocks);
    }

    /// Runs a parser until it misses nothing.
    pub(crate) async fn parse<T>(&self, parser: impl Fn(&Context<'_>) -> Result<T>) -> Result<T> {
        self.fetching(|file| parser(&file.context())).await
    }

    async fn fetching<T>(&self, parser: impl Fn(&File) -> Result<T>) -> Result<T> {
        loop {
            let result = parser(self);
            let missed = self.blocks.take_missed();
            if missed.is_empty() {
                self.blocks.shrink(MOST_KEPT);
                return result;
            }
            self.fetch(missed).await?;
        }
    }

    /// Runs a parser for every item until none misses anything; what they miss travels together.
    pub(crate) async fn parse_all<I, T>(
        &self,
        items: &[I],
        parser: impl Fn(&Context<'_>, &I) -> Result<T>,
    ) -> Result<Vec<Result<T>>> {
        let mut done: Vec<Option<Result<T>>> = items.iter().map(|_| None).collect();
        loop {
            for (item, done) in items
                .iter()
                .zip(&mut done)
                .filter(|(_, done)| done.is_none())
            {
                let before = self.blocks.misses();
                let result = parser(&self.context(), item);
                if self.blocks.misses() == before {
                    *done = Some(result);
                }
            }
            let missed = self.blocks.take_missed();
            if missed.is_empty() {
                self.blocks.shrink(MOST_KEPT);
                return Ok(done.into_iter().flatten().collect());
            }
            self.fetch(missed).await?;
        }
    }

    /// Fetches ranges that were missed.
    async fn fetch(&self, missed: Vec<Range<u64>>) -> Result<()> {
        // Many at a time are many places, each of them short.
        let ahead = match missed.len() <= FEW {
            true => {
                let ahead = self.ahead.load(Ordering::Relaxed);
                let next = (2 * ahead).clamp(BLOCK, MOST_AHEAD);
                self.ahead.store(next, Ordering::Relaxed);
                ahead
            }
            false => 0,
        };
        let ranges = widened(missed, ahead, self.size());
        stream::iter(ranges.into_iter().map(|range| self.fetch_one(range)))
            .buffer_unordered(CONCURRENT)
            .try_collect()
            .await
    }

    async fn fetch_one(&self, range: Range<u64>) -> Result<()> {
        let options = Get {
            range: Some(GetRange::Bounded(range.clone())),
            if_match: self.etag.clone(),
            if_none_match: None,
        };
        let got = self.store.get(&self.key, options).await.map_err(|e| {
            if e.kind() != ErrorKind::Conflict {
                return e;
            }
            Error::conflict(format!("the file {} changed while it was read", self.key))
                .with_hint("open it again")
                .with_source(e)
        })?;
        self.blocks.insert(range, &got.body.into_bytes()?)
    }

    /// Follows a path from the root, through hard and soft links.
    pub async fn find(&self, path: &str) -> Result<Found> {
        let mut left: Vec<String> = components(path);
        left.reverse();
        let mut at = self.root();
        let mut followed = 0;
        while let Some(name) = left.pop() {
            let link = self.link(at, &name).await?.ok_or_else(|| {
                Error::not_found(format!("{}: there is no {name:?} in {path:?}", self.key))
            })?;
            match link.target {
                Target::Hard(address) => at = address,
                // A path that begins in the group of its link, or at the root.
                Target::Soft(target) => {
                    followed += 1;
                    if followed > MOST_LINKS {
                        return Err(Error::data(format!(
                            "the links of {path:?} lead in a circle"
                        )));
                    }
                    if target.starts_with('/') {
                        at = self.root();
                    }
                    left.extend(components(&target).into_iter().rev());
                }
                Target::External { file, path: start } => {
                    let mut path = start;
                    while let Some(name) = left.pop() {
                        path = format!("{}/{name}", path.trim_end_matches('/'));
                    }
                    return Ok(Found::Elsewhere { file, path });
                }
                Target::User(kind) => {
                    return Err(Error::data(format!(
                        "{name:?} is a link of type {kind}, which only its program can follow"
                    )));
                }
            }
        }
        Ok(Found::Object(at))
    }

    /// The link of this name in the group at an address.
    async fn link(&self, group: u64, name: &str) -> Result<Option<Link>> {
        let links = self
            .parse(|context| link::links(context, &context.header(group)?))
            .await?;
        Ok(links.into_iter().find(|link| link.name == name))
    }
}

fn components(path: &str) -> Vec<String> {
    let parts = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".");
    parts.map(str::to_owned).collect()
}

/// Ranges with `ahead` more bytes each, joined where they are near; they begin and end at blocks.
fn widened(missed: Vec<Range<u64>>, ahead: u64, size: u64) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for range in missed {
        let end = range
            .end
            .saturating_add(ahead)
            .next_multiple_of(BLOCK)
            .min(size);
        match ranges.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(NEAR) => {
                last.end = last.end.max(end);
            }
            _ => ranges.push(range.start..end),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_ranges_travel_together() {
        let size = 1000 * BLOCK + 7;
        let block = |i: u64| i * BLOCK..(i + 1) * BLOCK;
        let joined = 0..4 * BLOCK;
        assert_eq!(widened(vec![block(0), block(3)], 0, size), [joined]);
        let far = vec![block(0), block(30)];
        assert_eq!(widened(far.clone(), 0, size), far);
        let joined = 0..61 * BLOCK;
        assert_eq!(widened(far, 30 * BLOCK, size), [joined]);
        let last = 1000 * BLOCK..size;
        assert_eq!(widened(vec![last.clone()], BLOCK, size), [last]);
    }
}
