//! What a rechunk has done so far, written down beside what it makes.
//!
//! One small object, `.hyperslab/rechunk/journal.json` below the array that is being made. It is
//! there from before the first chunk until after the last piece of clearing up, so whoever finds it
//! knows what to go on with. Invariant: what is marked as done is stored completely; what is done
//! and not marked is done again, to the same bytes.

use std::time::{Duration, Instant};

use bytes::Bytes;
use hyperslab_format::join;
use hyperslab_store::{Get, Put, StoreRef};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Mutex;

use super::plan::Plan;
use crate::{Error, Result};

/// The folder of a rechunk's own objects, below its array.
const FOLDER: &str = ".hyperslab/rechunk";
/// Marks are kept back for so long, so that small boxes do not cost a write each.
const PATIENCE: Duration = Duration::from_millis(250);
/// The form of the journal.
const VERSION: u32 = 1;

/// What the journal says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    version: u32,
    /// Where cells come from, without options.
    pub(super) source: String,
    /// The state of the source.
    pub(super) pin: String,
    /// The metadata that the array will have.
    pub(super) meta: Value,
    /// The metadata that it had, if it changes in place.
    pub(super) was: Option<Value>,
    /// Where the third place is, if it is not beside the array.
    pub(super) temp: Option<String>,
    /// How cells are moved.
    pub(super) plan: Plan,
    /// Bytes of memory that the plan takes.
    pub(super) needs: u64,
    /// What is done of each pass, a bit for each box.
    done: Vec<String>,
}

impl Record {
    /// A record of work that has not begun.
    pub(super) fn new(source: String, pin: String, meta: Value, needs: u64, plan: Plan) -> Self {
        Record {
            version: VERSION,
            source,
            pin,
            meta,
            was: None,
            temp: None,
            done: vec![String::new(); plan.passes()],
            plan,
            needs,
        }
    }

    fn is_done(&self, pass: usize, item: usize) -> bool {
        let digit = self.done.get(pass).and_then(|d| d.as_bytes().get(item / 4));
        let digit = digit.and_then(|d| char::from(*d).to_digit(16));
        digit.is_some_and(|digit| digit >> (item % 4) & 1 == 1)
    }

    fn mark(&mut self, pass: usize, item: usize) {
        let Some(done) = self.done.get_mut(pass) else {
            return;
        };
        while done.len() <= item / 4 {
            done.push('0');
        }
        let at = item / 4..item / 4 + 1;
        let digit = u32::from_str_radix(&done[at.clone()], 16).unwrap_or(0) | 1 << (item % 4);
        if let Some(digit) = char::from_digit(digit, 16) {
            done.replace_range(at, digit.encode_utf8(&mut [0; 4]));
        }
    }
}

/// The journal of a rechunk that is under way.
pub(super) struct Journal {
    store: StoreRef,
    key: String,
    state: Mutex<(Record, Instant)>,
}

/// The folder of a rechunk's own objects.
pub(super) fn folder(path: &str) -> String {
    join(path, FOLDER)
}

fn key(path: &str) -> String {
    join(&folder(path), "journal.json")
}

/// What an earlier run left at the array at `path`.
pub(super) async fn find(store: &StoreRef, path: &str) -> Result<Option<Record>> {
    let key = key(path);
    let got = match store.get(&key, Get::default()).await {
        Ok(got) => got.body.into_bytes()?,
        Err(e) if e.is_not_found() => return Ok(None),
        Err(e) => return Err(e),
    };
    let unreadable = |what: &str| {
        Error::data(format!("the journal {}/{key} {what}", store.url()))
            .with_hint("remove it, or begin again with --overwrite")
    };
    let record: Record = serde_json::from_slice(&got)
        .map_err(|e| unreadable("cannot be understood").with_source(e))?;
    if record.version != VERSION {
        return Err(unreadable("is of another version of Hyperslab"));
    }
    Ok(Some(record))
}

impl Journal {
    /// Begins a journal; `Conflict` if somebody else did.
    pub(super) async fn begin(store: &StoreRef, path: &str, record: Record) -> Result<Self> {
        let journal = Self::resume(store, path, record);
        let text = render(&journal.state.lock().await.0)?;
        let begun = store.put(&journal.key, vec![text], Put::Create).await;
        begun.map_err(|e| e.context("another rechunk is under way"))?;
        Ok(journal)
    }

    /// Goes on with a journal that was found.
    pub(super) fn resume(store: &StoreRef, path: &str, record: Record) -> Self {
        Journal {
            store: store.clone(),
            key: key(path),
            state: Mutex::new((record, Instant::now())),
        }
    }

    /// True if a box of a pass is stored.
    pub(super) async fn is_done(&self, pass: usize, item: usize) -> bool {
        self.state.lock().await.0.is_done(pass, item)
    }

    /// Remembers that a box of a pass is stored.
    pub(super) async fn mark(&self, pass: usize, item: usize) -> Result<()> {
        let mut state = self.state.lock().await;
        state.0.mark(pass, item);
        match state.1.elapsed() < PATIENCE {
            true => Ok(()),
            false => self.write(&mut state).await,
        }
    }

    /// Writes down all that was marked.
    pub(super) async fn flush(&self) -> Result<()> {
        let mut state = self.state.lock().await;
        self.write(&mut state).await
    }

    async fn write(&self, state: &mut (Record, Instant)) -> Result<()> {
        let text = render(&state.0)?;
        self.store
            .put(&self.key, vec![text], Put::Overwrite)
            .await?;
        state.1 = Instant::now();
        Ok(())
    }
}

/// Takes back all marks, before what they stand for is removed.
pub(super) async fn reset(store: &StoreRef, path: &str, record: &Record) -> Result<()> {
    let mut record = record.clone();
    record.done = vec![String::new(); record.plan.passes()];
    let text = render(&record)?;
    let put = store.put(&key(path), vec![text], Put::Overwrite).await;
    put.map(drop)
}

/// Removes the journal of the array at `path`: the last thing that a rechunk does.
pub(super) async fn remove(store: &StoreRef, path: &str) -> Result<()> {
    store.delete(&key(path)).await
}

fn render(record: &Record) -> Result<Bytes> {
    let text = serde_json::to_vec(record)
        .map_err(|e| Error::internal("a journal cannot be written down").with_source(e))?;
    Ok(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rechunk::plan::Stage;

    fn record() -> Record {
        let sides = Stage {
            sides: vec![2],
            slots: 1,
        };
        let plan = Plan::Staged {
            slabs: sides.clone(),
            boxes: sides,
        };
        Record::new("a".into(), "p".into(), Value::Null, 7, plan)
    }

    #[test]
    fn marks_are_kept_and_come_back() {
        let mut record = record();
        for item in [0, 3, 4, 17, 100] {
            assert!(!record.is_done(1, item));
            record.mark(1, item);
        }
        let text = serde_json::to_string(&record).unwrap();
        let record: Record = serde_json::from_str(&text).unwrap();
        let done: Vec<usize> = (0..200).filter(|i| record.is_done(1, *i)).collect();
        assert_eq!(done, [0, 3, 4, 17, 100]);
        assert!((0..200).all(|i| !record.is_done(0, i) && !record.is_done(2, i)));
    }

    #[test]
    fn a_journal_is_begun_once_and_found_again() {
        crate::block_on(async {
            let store = hyperslab_store::open("memory://rechunk-journal")?;
            assert!(find(&store, "x").await?.is_none());
            let journal = Journal::begin(&store, "x", record()).await?;
            assert!(Journal::begin(&store, "x", record()).await.is_err());
            journal.mark(0, 5).await?;
            journal.flush().await?;
            let found = find(&store, "x").await?.unwrap();
            assert!(found.is_done(0, 5) && !found.is_done(0, 4));
            remove(&store, "x").await?;
            assert!(find(&store, "x").await?.is_none());
            store
                .put(
                    "x/.hyperslab/rechunk/journal.json",
                    vec!["{".into()],
                    Put::Overwrite,
                )
                .await?;
            assert!(find(&store, "x").await.is_err());
            Ok(())
        })
        .unwrap();
    }
}
