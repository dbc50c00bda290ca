//! Rechunking: moves an array to another layout, out of core.
//!
//! Above the executors of reads and writes, beside `copy`. A plan ([`plan`]) says which boxes are
//! moved at a time, straight or by way of raw cells at a third place ([`slabs`]); a journal
//! ([`journal`]) says which are done. Chunks come first and metadata last, so nobody sees an array
//! that is not complete; in place, the new chunks have other names than the old ones
//! ([`in_place`]), and the change of the metadata is the switch.
//!
//! Invariants: cells and chunks in flight stay within the memory that was given; no chunk of the
//! source is read more than twice (chunks of strings may be); a rechunk that was killed can be
//! resumed, and makes the same bytes; a source that changed meanwhile is a `Conflict`, and nothing
//! is published.

mod apart;
mod carry;
mod digest;
mod in_place;
mod journal;
mod needs;
mod pin;
mod plan;
mod rows;
mod slabs;

use hyperslab_format as format;
use hyperslab_format::{ArrayMeta, ArraySpec, GroupMeta, Loaded};
use hyperslab_index::Region;
use serde::Serialize;
use serde_json::Value;

use self::carry::{Buffers, Carrier};
use self::journal::{Journal, Record};
use self::needs::Needs;
use self::plan::Plan;
use self::slabs::Slabs;
use crate::copy::same_kind;
use crate::{Array, Error, Progress, Result, Session};

pub use self::in_place::rechunk_in_place;
pub(crate) use self::plan::lcm;

/// Settings of a rechunk.
#[derive(Debug, Clone)]
pub struct RechunkOptions {
    /// Bytes of memory that it may take.
    pub memory: u64,
    /// How many of them the process takes by itself, for a limit that holds for all of it.
    pub overhead: u64,
    /// A folder or URL for the cells between two passes, where two are needed; `None` keeps them
    /// beside the new array. They take as much as all cells do, uncompressed.
    pub temp: Option<String>,
    /// Go on with a rechunk that was stopped.
    pub resume: bool,
    /// Replace what is there, or drop what a rechunk that was stopped left.
    pub overwrite: bool,
    /// Read everything again and compare, before the new array can be seen.
    pub verify: bool,
}

impl Default for RechunkOptions {
    fn default() -> Self {
        RechunkOptions {
            memory: 1 << 30,
            overhead: 0,
            temp: None,
            resume: false,
            overwrite: false,
            verify: false,
        }
    }
}

/// What a rechunk did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Rechunked {
    /// Cells of the array.
    pub cells: u64,
    /// Passes over them: 2 if they went by way of a third place, 0 if there was nothing to do.
    pub passes: u64,
    /// How often the source's chunks were read, at most.
    pub source_reads: u64,
    /// Sides of the boxes that were written at a time.
    pub box_shape: Vec<u64>,
    /// Bytes of memory that were planned for, at most.
    pub planned_memory: u64,
    /// It went on with what an earlier run had begun.
    pub resumed: bool,
    /// Both arrays were read and compared.
    pub verified: bool,
}

/// Makes an array at `url` with the cells of `from` and the layout of `spec`, which has the same
/// shape and type. The array appears there when it is complete.
pub async fn rechunk(
    from: &Array,
    url: &str,
    spec: ArraySpec,
    options: &RechunkOptions,
    progress: &dyn Progress,
) -> Result<(Array, Rechunked)> {
    let callers = from.session().clone();
    let session = callers.within(needs::session_share(options));
    let from = from.in_session(&session);
    from.verify().await?;
    let (open, location) = session.place(url).await?;
    apart::check(&from, &location)?;
    let meta = spec.build(&open.policy)?;
    let to = Array::new(&session, open.clone(), &location, meta.clone(), false)?;
    to.writable()?;
    same_kind(&from, &to)?;
    let store = open.store.clone();
    let wanted = meta.to_json();
    let left = journal::find(&store, &location.path).await;
    let left = match left {
        Err(_) if options.overwrite => None,
        left => left?,
    };
    let there = match format::load(&*store, &location.path).await {
        Ok(loaded) => Some(loaded),
        Err(e) if e.is_not_found() => None,
        Err(e) => return Err(e),
    };
    let record = match left {
        Some(record) if options.resume => Some(resumable(record, &from, &wanted, options).await?),
        Some(_) if !options.overwrite => return Err(unfinished(to.url())),
        Some(record) => {
            drop_slabs(&session, &to, &record).await?;
            None
        }
        None => None,
    };
    if record.is_none() {
        // What cannot be done had better be said before anything is removed or made.
        Needs::of(&from, &to, options).await?.plan(&to)?;
        if options.overwrite {
            // Before anything that it says is done is removed.
            journal::remove(&store, &location.path).await?;
        }
        if let (true, Some(loaded)) = (options.resume, &there) {
            return finished(&from, to.in_session(&callers), loaded, meta);
        }
        session.clear(&open, &location, options.overwrite).await?;
        let parent = location
            .path
            .rsplit_once('/')
            .map_or("", |(parent, _)| parent);
        let group = match parent {
            "" => GroupMeta::root(),
            _ => GroupMeta::default(),
        };
        if !location.path.is_empty() {
            format::save_group(&*store, parent, &group).await?;
        }
    }
    let work = Work {
        from: &from,
        to: &to,
        record,
        was: None,
        options,
    };
    let (done, pinned) = work.run(progress).await?;
    pin::check(&from, &pinned).await?;
    let published = |loaded: &Loaded| matches!(&loaded.node, format::Node::Array(m) if **m == meta);
    match there.filter(|there| done.resumed && published(there)) {
        // Killed after the metadata was written.
        Some(_) => format::sync_copies(&*store, &[(location.path.clone(), Some(wanted))]).await?,
        None => format::save_node(&*store, &location.path, &wanted).await?,
    }
    work.clear_up().await?;
    Ok((to.in_session(&callers), done))
}

/// A rechunk that is to be run or gone on with.
struct Work<'a> {
    from: &'a Array,
    to: &'a Array,
    /// What an earlier run left.
    record: Option<Record>,
    /// The metadata before a rechunk in place.
    was: Option<Value>,
    options: &'a RechunkOptions,
}

impl Work<'_> {
    /// Moves all cells, and compares them if asked; returns the pin of the source too. The caller
    /// checks that, publishes, and clears up.
    async fn run(&self, progress: &dyn Progress) -> Result<(Rechunked, String)> {
        let (from, to, options) = (self.from, self.to, self.options);
        let needs = Needs::of(from, to, options).await?;
        let inner = to.inner();
        let path = &inner.location.path;
        let record = match &self.record {
            Some(record) => {
                needs.check(record)?;
                record.clone()
            }
            None => {
                let plan = needs.plan(to)?;
                let pin = pin::pin(from).await?;
                let meta = to.meta().to_json();
                let source = from.url().to_owned();
                let mut record = Record::new(source, pin, meta, needs.planned(&plan), plan);
                record.was.clone_from(&self.was);
                record.temp.clone_from(&options.temp);
                record
            }
        };
        let journal = match &self.record {
            Some(_) => Journal::resume(&inner.open.store, path, record.clone()),
            None => Journal::begin(&inner.open.store, path, record.clone()).await?,
        };
        let slabs = slabs_of(from.session(), to, &record).await?;
        let cells = to.shape().num_cells();
        let passes = record.plan.passes() as u64 + if options.verify { 2 } else { 0 };
        progress.start(cells * needs.problem.cell * passes);
        let mut done = Rechunked {
            cells,
            passes: record.plan.passes() as u64,
            source_reads: needs.source_reads(&record.plan),
            box_shape: record.plan.boxes().sides.clone(),
            planned_memory: record.needs,
            resumed: self.record.is_some(),
            verified: false,
        };
        if cells > 0 {
            let carrier = Carrier {
                from,
                to,
                cell: needs.problem.cell,
                journal: &journal,
                progress,
                buffers: Buffers::default(),
            };
            carrier.run(&record.plan, slabs.as_ref()).await?;
            if options.verify {
                self.compare(&needs, &record.plan, progress).await?;
            }
        }
        done.verified = options.verify;
        Ok((done, record.pin))
    }

    /// Reads both arrays, each in its own order, and compares them.
    async fn compare(&self, needs: &Needs, plan: &Plan, progress: &dyn Progress) -> Result<()> {
        let cell = needs.problem.cell;
        let scan = needs.scan()?;
        let old = digest::digest(self.from, &scan, cell, progress).await?;
        let new = digest::digest(self.to, plan.boxes(), cell, progress).await?;
        if old == new {
            return Ok(());
        }
        Err(Error::data(format!(
            "the new chunks of {} do not hold the cells of {}",
            self.to.url(),
            self.from.url()
        ))
        .with_hint("something else wrote to one of them meanwhile; begin again with --overwrite"))
    }

    /// Removes all that is no part of the array.
    async fn clear_up(&self) -> Result<()> {
        let inner = self.to.inner();
        let left = journal::find(&inner.open.store, &inner.location.path).await?;
        if let Some(record) = left {
            drop_slabs(self.from.session(), self.to, &record).await?;
        }
        journal::remove(&inner.open.store, &inner.location.path).await
    }
}

/// The third place of a rechunk, if it has one.
async fn slabs_of(session: &Session, to: &Array, record: &Record) -> Result<Option<Slabs>> {
    let Plan::Staged { slabs, boxes } = &record.plan else {
        return Ok(None);
    };
    let inner = to.inner();
    let (store, folder) = match &record.temp {
        Some(url) => {
            // The same for all runs with this aim, and for no other.
            let name = pin::name_of(&[to.url(), &record.meta.to_string(), &record.pin]);
            let open = session.store(url).await?;
            (open.store, format!("hyperslab-rechunk-{name}"))
        }
        None => {
            let folder = journal::folder(&inner.location.path);
            (inner.open.store.clone(), format!("{folder}/slabs"))
        }
    };
    Ok(Some(Slabs {
        store,
        folder,
        whole: Region::whole(&to.shape()),
        sides: slabs.sides.clone(),
        boxes: boxes.sides.clone(),
        cell: to.dtype().cell_bytes().unwrap_or(1),
    }))
}

async fn drop_slabs(session: &Session, to: &Array, record: &Record) -> Result<()> {
    match slabs_of(session, to, record).await? {
        Some(slabs) => slabs.clear().await,
        None => Ok(()),
    }
}

/// What an earlier run left, if this one may go on with it.
async fn resumable(
    record: Record,
    from: &Array,
    wanted: &Value,
    options: &RechunkOptions,
) -> Result<Record> {
    let differs = |what: &str| {
        Err(Error::conflict(format!("{what} since the rechunk began"))
            .with_hint("say what it began with, or begin again with --overwrite"))
    };
    if record.source != from.url() {
        return differs(&format!(
            "the source was {} and not {}",
            record.source,
            from.url()
        ));
    }
    if record.meta != *wanted {
        return differs("the layout that is asked for is another one");
    }
    if record.temp != options.temp {
        return differs("the folder for cells between passes is another one");
    }
    pin::check(from, &record.pin).await?;
    Ok(record)
}

fn unfinished(url: &str) -> Error {
    Error::conflict(format!("a rechunk of {url} was stopped before its end")).with_hint(
        "go on with it with --resume, or drop what it left and begin again with --overwrite",
    )
}

/// The answer to a resume that finds a complete array and nothing left to do.
fn finished(
    from: &Array,
    to: Array,
    there: &Loaded,
    wanted: ArrayMeta,
) -> Result<(Array, Rechunked)> {
    match &there.node {
        format::Node::Array(meta) if **meta == wanted => {
            let done = Rechunked {
                cells: wanted.shape.num_cells(),
                resumed: true,
                ..Rechunked::default()
            };
            Ok((to, done))
        }
        _ => Err(Error::conflict(format!(
            "{} is there, and is not what a rechunk of {} makes",
            to.url(),
            from.url()
        ))
        .with_hint("add --overwrite instead of --resume to replace it")),
    }
}
