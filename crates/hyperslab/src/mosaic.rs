//! Virtual datasets: arrays whose cells are cells of other arrays, often in other files.
//!
//! Between an open file and the executor. A read of a virtual dataset becomes reads of its sources,
//! which land in the caller's buffer directly and are planned together, whatever the number of files.
//! A source that is not there is the fill value, as libhdf5 has it, and a warning; `Options` can make
//! it an error.
//!
//! Invariant: the reads of one round write disjoint cells ([`crate::canvas`] asks for it). Tiles that
//! overlap are read in rounds, one after the other, so that the later one wins.

mod axis;
mod convert;
mod extent;
mod tile;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt, stream};
use hyperslab_format::hdf5::{Entry, Stored};
use hyperslab_index::{CellOrder, ChunkGrid, Hyperslab, Selection, Shape, Target};
use tokio::sync::OnceCell;

use crate::array::State;
use crate::file::OpenFile;
use crate::location::Location;
use crate::read::Job;
use crate::scatter::Destination;
use crate::session::OpenStore;
use crate::{Array, Error, Node, Result, Session};
use convert::Conversion;
use tile::{Cells, Patch};

/// Virtual datasets of virtual datasets, at most.
const DEEPEST: usize = 16;
/// Sources that are opened at a time.
const CONCURRENT: usize = 32;

/// Where the cells of a virtual dataset come from.
#[derive(Debug)]
pub(crate) struct Mosaic {
    home: Home,
    tiles: Vec<Tile>,
    /// Files of sources, by the names that the mapping gives them.
    files: Mutex<HashMap<String, Arc<OnceCell<Option<Opened>>>>>,
    /// Dimensions of the array that are those of its elements.
    inner: usize,
}

/// The file that a virtual dataset is in.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    pub(crate) session: Session,
    /// The file and its store; `None` if it is a hierarchy of arrays in a store.
    pub(crate) file: Option<(OpenStore, Arc<OpenFile>)>,
    pub(crate) location: Location,
    /// How many virtual datasets lead here.
    pub(crate) depth: usize,
}

/// A file with sources, or a hierarchy of arrays.
#[derive(Debug, Clone)]
struct Opened {
    file: Option<(OpenStore, Arc<OpenFile>)>,
    location: Location,
}

#[derive(Debug)]
struct Tile {
    entry: Entry,
    /// Coordinates along the dimension without limit, if there is one.
    cells: Option<u64>,
    source: OnceCell<Option<Array>>,
}

/// Reads that may run together, and what is to be done when they have.
#[derive(Debug, Default)]
pub(crate) struct Round {
    pub(crate) jobs: Vec<Job>,
    conversions: Vec<Conversion>,
}

impl Round {
    /// What is left to do with cells of another type, once they are there.
    pub(crate) fn finish(conversions: Vec<Conversion>) -> Result<()> {
        conversions.into_iter().try_for_each(Conversion::finish)
    }

    pub(crate) fn split(self) -> (Vec<Job>, Vec<Conversion>) {
        (self.jobs, self.conversions)
    }
}

impl Mosaic {
    /// The mosaic of a mapping, and the shape that it has now: mappings without limit are as long as
    /// their sources are.
    pub(crate) async fn open(
        home: Home,
        entries: Vec<Entry>,
        shape: &Shape,
        inner: usize,
    ) -> Result<(Mosaic, Shape)> {
        if home.depth > DEEPEST {
            return Err(Error::data(
                "virtual datasets lead to virtual datasets without an end",
            ));
        }
        let mut mosaic = Mosaic {
            inner,
            ..Mosaic::empty(home)
        };
        let shape = extent::settle(&mut mosaic, entries, shape).await?;
        Ok((mosaic, shape))
    }

    /// A mosaic without tiles.
    pub(crate) fn empty(home: Home) -> Mosaic {
        Mosaic {
            home,
            tiles: Vec::new(),
            files: Mutex::default(),
            inner: 0,
        }
    }

    /// Adds a tile that is a whole array.
    pub(crate) fn push_source(&mut self, place: Stored, array: Array) {
        self.tiles.push(Tile {
            entry: Entry {
                file: String::new(),
                dataset: String::new(),
                source: Stored::All,
                place,
            },
            cells: None,
            source: OnceCell::new_with(Some(Some(array))),
        });
    }

    fn push(&mut self, entry: Entry, cells: Option<u64>) {
        self.tiles.push(Tile {
            entry,
            cells,
            source: OnceCell::new(),
        });
    }

    /// The source of an entry; `None`, and a warning, if it is not there.
    async fn source(&self, entry: &Entry) -> Result<Option<Array>> {
        let found = self.find(entry).await?;
        if found.is_none() {
            self.missing(&format!("{:?} of {:?}", entry.dataset, entry.file))?;
        }
        Ok(found)
    }

    /// The source of an entry, if it is there.
    async fn find(&self, entry: &Entry) -> Result<Option<Array>> {
        let Some(opened) = self.file(&entry.file).await? else {
            return Ok(None);
        };
        let location = Location {
            path: entry.dataset.trim_matches('/').to_owned(),
            ..opened.location.clone()
        };
        let Home { session, depth, .. } = &self.home;
        let node = match opened.file {
            Some((open, file)) => {
                session
                    .node_at(open, file, location.clone(), depth + 1)
                    .await
            }
            None => session.load_zarr(&location).await,
        };
        match node {
            Ok(Node::Array(array)) => Ok(Some(array)),
            Ok(Node::Group(_)) => Err(Error::data(format!(
                "{} is a group, and not the source of a virtual dataset",
                location.url()
            ))),
            Err(e) if e.is_not_found() => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// A source that is not there is a warning, or an error where that is asked for.
    fn missing(&self, what: &str) -> Result<()> {
        if self.home.session.options().strict_sources {
            return Err(Error::not_found(format!(
                "{what}, a source of the virtual dataset {}, is not there",
                self.home.location.url()
            )));
        }
        tracing::warn!(
            "{what} is not there: its cells of {} are the fill value",
            self.home.location.url()
        );
        Ok(())
    }

    async fn file(&self, name: &str) -> Result<Option<Opened>> {
        let Home {
            session,
            file,
            location,
            ..
        } = &self.home;
        if name == "." {
            return Ok(Some(Opened {
                file: file.clone(),
                location: location.clone(),
            }));
        }
        let cell = {
            let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
            files.entry(name.to_owned()).or_default().clone()
        };
        let opened = cell.get_or_try_init(|| async {
            if let Some((open, file, location)) = session.open_beside(location, name).await? {
                return Ok(Some(Opened {
                    file: Some((open, file)),
                    location,
                }));
            }
            for location in location.beside(name) {
                match session.load_zarr(&location).await {
                    Ok(_) => {
                        return Ok(Some(Opened {
                            file: None,
                            location,
                        }));
                    }
                    Err(e) if e.is_not_found() => {}
                    Err(e) => return Err(e),
                }
            }
            Ok::<_, Error>(None)
        });
        Ok(opened.await?.clone())
    }

    /// What a tile has of a query: its source, and the parts of it.
    async fn part(
        &self,
        tile: &Tile,
        shape: &Shape,
        query: &Selection,
        target: &Target,
    ) -> Result<Option<(Cells, Array, Vec<Patch>)>> {
        let place = Cells::new(&tile.entry.place, shape, self.inner, tile.cells)?;
        if !place.may_meet(query, shape) {
            return Ok(None);
        }
        let source = tile.source.get_or_try_init(|| self.source(&tile.entry));
        let Some(array) = source.await?.clone() else {
            return Ok(None);
        };
        let source_shape = array.shape();
        let cells = Cells::new(&tile.entry.source, &source_shape, self.inner, tile.cells)
            .map_err(|e| e.context(array.url()))?;
        let copies = tile::copies((&place, shape), (&cells, &source_shape), query, target)
            .map_err(|e| e.context(array.url()))?;
        Ok((!copies.is_empty()).then_some((place, array, copies)))
    }

    /// What of its sources a query reads.
    pub(crate) async fn sources(
        &self,
        shape: &Shape,
        query: &Selection,
    ) -> Result<Vec<(Array, Selection)>> {
        let target = Target::packed(query.result_shape(shape));
        let parts = self.parts(shape, query, &target).await?;
        let each = parts.into_iter().flat_map(|(_, array, copies)| {
            let copies = copies.into_iter();
            copies.map(move |copy| (array.clone(), Selection::Hyperslab(copy.source)))
        });
        Ok(each.collect())
    }

    /// The parts of all tiles, in their order.
    async fn parts(
        &self,
        shape: &Shape,
        query: &Selection,
        target: &Target,
    ) -> Result<Vec<(Cells, Array, Vec<Patch>)>> {
        // Not an iterator over a closure: what it returns would have to live for any time.
        let mut parts = Vec::with_capacity(self.tiles.len());
        for tile in &self.tiles {
            parts.push(self.part(tile, shape, query, target));
        }
        let found: Vec<Option<_>> = stream::iter(parts)
            .buffered(CONCURRENT)
            .try_collect()
            .await?;
        Ok(found.into_iter().flatten().collect())
    }
}

/// The reads that jobs come to: those of virtual datasets become reads of their sources.
pub(crate) fn rounds(jobs: Vec<Job>) -> BoxFuture<'static, Result<Vec<Round>>> {
    // In a box, since a source may be virtual itself.
    Box::pin(async move {
        let mut rounds = vec![Round::default()];
        for job in jobs {
            let Some(mosaic) = &job.state.mosaic else {
                rounds[0].jobs.push(job);
                continue;
            };
            let more = expand(mosaic, &job).await;
            let more = more.map_err(|e| e.context(job.array.url()))?;
            // Different jobs write different cells: their first rounds may run together.
            for (i, round) in more.into_iter().enumerate() {
                if rounds.len() == i {
                    rounds.push(Round::default());
                }
                rounds[i].jobs.extend(round.jobs);
                rounds[i].conversions.extend(round.conversions);
            }
        }
        Ok(rounds)
    })
}

async fn expand(mosaic: &Mosaic, job: &Job) -> Result<Vec<Round>> {
    let state = &*job.state;
    let shape = &state.meta.shape;
    fill(state, &job.selection, &job.destination)?;
    let target = &job.destination.target;
    let parts = mosaic.parts(shape, &job.selection, target).await?;
    let mut rounds: Vec<(Vec<Cells>, Round)> = Vec::new();
    for (place, array, copies) in parts {
        let at = rounds
            .iter()
            .rposition(|(cells, _)| cells.iter().any(|other| other.may_overlap(&place)))
            .map_or(0, |last| last + 1);
        if rounds.len() == at {
            rounds.push(Default::default());
        }
        let (cells, round) = &mut rounds[at];
        cells.push(place);
        for copy in copies {
            add(round, job, &array, copy)?;
        }
    }
    // A source may itself be virtual.
    let mut out = Vec::new();
    for (_, round) in rounds {
        let (jobs, conversions) = round.split();
        let mut below = self::rounds(jobs).await?;
        if let Some(last) = below.last_mut() {
            last.conversions.extend(conversions);
        }
        out.extend(below);
    }
    Ok(out)
}

/// Adds the read of a part of a source.
fn add(round: &mut Round, job: &Job, array: &Array, copy: Patch) -> Result<()> {
    let state = array.state();
    let (from, to) = (&state.meta.dtype, &job.state.meta.dtype);
    let destination = if from == to {
        Destination {
            canvas: job.destination.canvas.clone(),
            target: copy.target,
            cell: state.cell,
        }
    } else {
        let (canvas, conversion) = Conversion::new(from, to, &copy, &job.destination)?;
        round.conversions.push(conversion);
        Destination {
            canvas,
            target: Target::packed(copy.source.result_shape()),
            cell: state.cell,
        }
    };
    round.jobs.push(Job {
        array: array.clone(),
        state,
        selection: Selection::Hyperslab(copy.source),
        destination,
    });
    Ok(())
}

/// Writes the fill value into all cells of a selection.
fn fill(state: &State, selection: &Selection, destination: &Destination) -> Result<()> {
    let shape = &state.meta.shape;
    if shape.num_cells() == 0 {
        return Ok(());
    }
    let grid = ChunkGrid::new(shape, shape)?;
    let order = CellOrder::row_major(shape.rank());
    for part in grid.parts(selection)? {
        destination.scatter_fill(state.meta.fill.bytes(), &part, &order)?;
    }
    Ok(())
}

/// Reads strings of a virtual dataset.
pub(crate) fn strings<'a>(
    mosaic: &'a Mosaic,
    state: &'a State,
    selection: &'a Selection,
) -> BoxFuture<'a, Result<Vec<Bytes>>> {
    Box::pin(strings_of(mosaic, state, selection))
}

async fn strings_of(mosaic: &Mosaic, state: &State, selection: &Selection) -> Result<Vec<Bytes>> {
    let shape = &state.meta.shape;
    let result = selection.result_shape(shape);
    let target = Target::packed(&result[..]);
    let fill = Bytes::copy_from_slice(state.meta.fill.bytes());
    let mut out = vec![fill; result.num_cells() as usize];
    for (_, array, copies) in mosaic.parts(shape, selection, &target).await? {
        if array.dtype() != state.meta.dtype {
            return Err(convert::impossible(&array.dtype(), &state.meta.dtype).context(array.url()));
        }
        for copy in copies {
            let cells = array
                .read_strings(&Selection::Hyperslab(copy.source.clone()))
                .await?;
            for (at, cell) in places(&copy.source, &copy.target).zip(cells) {
                let place = usize::try_from(at).ok().and_then(|at| out.get_mut(at));
                *place
                    .ok_or_else(|| Error::internal("a string would land outside the result"))? =
                    cell;
            }
        }
    }
    Ok(out)
}

/// Where each cell of a hyperslab goes, in row-major order.
fn places<'a>(slab: &Hyperslab, target: &'a Target) -> impl Iterator<Item = u64> + use<'a> {
    let shape = slab.result_shape();
    let cells: u64 = shape.iter().product();
    (0..cells).map(move |i| {
        let mut left = i;
        let mut at = target.base();
        for (side, stride) in shape.iter().zip(target.strides()).rev() {
            at += left % side * stride;
            left /= side;
        }
        at
    })
}
