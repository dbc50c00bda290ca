//! Calls of the function next to the data: what is asked of it, and where its answer lands.
//!
//! The function sends wanted cells only, in the order in which they were asked for, so the
//! placements made with a request say where each run of the answer goes. Invariant: the calls of an
//! object ask for each wanted cell once.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::future::try_join_all;
use hyperslab_format::{Piece, Source};
use hyperslab_function::{FunctionClient, Part, SlabRequest, StridedRun, Unit, UnitCodecs};
use hyperslab_plan::{Call, Method};

use crate::array::State;
use crate::clip::clip;
use crate::fetch::Prepared;
use crate::read::Job;
use crate::scatter::Placement;
use crate::tasks::on_core;
use crate::{Error, Result};

/// A call that takes so many times as long as it should, and a moment more, is given up, and the
/// object is fetched without the function.
const PATIENCE: f64 = 4.0;
const MOMENT: Duration = Duration::from_secs(2);
/// Whatever a profile says, no call is waited for longer.
const LONGEST: Duration = Duration::from_secs(120);

/// Fetches the wanted cells of an object by calls of the function, and scatters them.
pub(crate) async fn run(
    job: &Arc<Job>,
    prepared: &Prepared,
    client: &Arc<FunctionClient>,
    calls: &[Call],
) -> Result<()> {
    let pin = prepared.pin();
    let work = calls.iter().map(|call| {
        let pin = pin.clone();
        async move {
            let (units, places) = ask(job, &prepared.object.pieces, call)?;
            let url = job.array.object_url(&prepared.object.key);
            let request = SlabRequest::new(url, units)?.pinned(pin);
            let (cells, etag) = send(job, client, &request, call.bytes).await?;
            let job = job.clone();
            let session = job.array.inner().session.clone();
            on_core(&session, move || deliver(&job, &cells, &places)).await?;
            Ok(etag)
        }
    });
    let etags: Vec<Option<String>> = try_join_all(work).await?;
    // Several calls must not see several states of the object. Should they have, all cells are
    // fetched again.
    let one = etags.windows(2).all(|pair| pair[0] == pair[1]);
    if pin.is_none() && etags.len() > 1 && (!one || etags[0].is_none()) {
        return Err(Error::conflict(
            "the object changed between calls of the function",
        ));
    }
    Ok(())
}

/// Fetches the wanted cells of several objects by one call.
pub(crate) async fn run_bundle(
    client: &Arc<FunctionClient>,
    objects: &[(Arc<Job>, Prepared, Method)],
) -> Result<()> {
    let mut request: Option<SlabRequest> = None;
    let mut asked = Vec::with_capacity(objects.len());
    let mut read = 0;
    for (job, prepared, method) in objects {
        let Method::Function(calls) = method else {
            return Err(Error::internal("an object of a bundle has no call"));
        };
        for call in calls {
            let (units, places) = ask(job, &prepared.object.pieces, call)?;
            let object = job.array.object_url(&prepared.object.key);
            let etag = prepared.pin();
            read += call.bytes;
            request = Some(match request {
                None => SlabRequest::new(object, units)?.pinned(etag),
                Some(request) => request.and(Part {
                    object,
                    etag,
                    units,
                })?,
            });
            asked.push((job.clone(), places));
        }
    }
    let (Some(request), Some((first, ..))) = (request, objects.first()) else {
        return Ok(());
    };
    let (mut cells, _) = send(first, client, &request, read).await?;
    let session = first.array.inner().session.clone();
    on_core(&session, move || {
        for (job, places) in asked {
            let each = places.placements.iter().map(|p| p.len * p.count);
            let len = each.sum();
            if len > cells.len() {
                return Err(Error::data("the function answered too few cells"));
            }
            deliver(&job, &cells.split_to(len), &places)?;
        }
        Ok(())
    })
    .await
}

/// Makes a call that reads so many bytes, when the window of calls has room for it.
async fn send(
    job: &Job,
    client: &FunctionClient,
    request: &SlabRequest,
    read: u64,
) -> Result<(Bytes, Option<String>)> {
    let planner = &job.array.inner().open.planner;
    let _slot = planner
        .calls
        .acquire()
        .await
        .map_err(|_| Error::internal("the window of calls was closed"))?;
    let model = planner.model();
    let start = model.function().map_or(0.0, |f| f.cold_seconds);
    let should = start + model.call_first_byte(read) + model.answer_seconds(request.size_limit);
    let patience = Duration::try_from_secs_f64(PATIENCE * should).unwrap_or(LONGEST);
    let deadline = Instant::now() + (patience + MOMENT).min(LONGEST);
    client.call_tagged(request, deadline).await
}

/// Where an answer goes.
struct Places {
    placements: Vec<Placement>,
    /// Cells come as they are stored, and not as they are in memory.
    stored: bool,
}

fn deliver(job: &Job, cells: &Bytes, places: &Places) -> Result<()> {
    let codecs = job.state.meta.unit_codecs();
    if places.stored && !codecs.is_raw() {
        let mut fixed = cells.to_vec();
        codecs.fix_order(&mut fixed);
        return job.destination.place(&fixed, &places.placements);
    }
    job.destination.place(cells, &places.placements)
}

/// What a call is asked for, and where its answer goes.
fn ask(job: &Job, pieces: &[Piece], call: &Call) -> Result<(Vec<Unit>, Places)> {
    let state = &*job.state;
    let cell = state.cell as u64;
    let mut units = Vec::new();
    let mut placements = Vec::new();
    let raw = state.meta.codecs.is_rangeable();
    // Calls may divide inner chunks whose cells are stored as they are.
    let raw_units = state.has_raw_units() && pieces.iter().all(|piece| is_whole_unit(state, piece));
    for piece in pieces {
        let within = match &piece.source {
            Source::Fill => {
                job.destination
                    .scatter_fill(state.meta.fill.bytes(), &piece.part, &state.order)?;
                continue;
            }
            Source::Range(range) if raw_units => {
                let part = range.start.max(call.read.start)..range.end.min(call.read.end);
                if part.is_empty() {
                    continue;
                }
                part.start - range.start..part.end - range.start
            }
            Source::Range(range) if !contains(&call.read, range) => continue,
            _ if raw => call.read.clone(),
            _ => 0..u64::MAX,
        };
        let mut runs = Vec::new();
        for copy in piece.part.copies(&state.order, &job.destination.target) {
            clip(&copy, cell, &within, |run, placement| {
                runs.push(StridedRun {
                    start: run.start - if raw || raw_units { within.start } else { 0 },
                    ..run
                });
                placements.push(placement);
            });
        }
        if runs.is_empty() {
            continue;
        }
        units.push(match &piece.source {
            _ if raw => Unit::raw(runs).at(within),
            Source::Range(range) if raw_units => {
                Unit::raw(runs).at(range.start + within.start..range.start + within.end)
            }
            Source::Range(range) => Unit::decoded(unit_codecs(state), runs).at(range.clone()),
            _ => Unit::decoded(unit_codecs(state), runs),
        });
    }
    let stored = raw || raw_units;
    Ok((units, Places { placements, stored }))
}

/// True if a piece has as many bytes as its cells, or none.
fn is_whole_unit(state: &State, piece: &Piece) -> bool {
    match &piece.source {
        Source::Range(range) => state.is_unit(range),
        Source::Fill => true,
        _ => false,
    }
}

fn contains(outer: &Range<u64>, inner: &Range<u64>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

fn unit_codecs(state: &State) -> UnitCodecs {
    UnitCodecs {
        codecs: serde_json::Value::Array(state.meta.unit_codecs().to_json().to_vec()),
        data_type: state.meta.dtype.to_json(),
        fill_value: state.meta.fill.to_json(&state.meta.dtype),
        shape: state.unit.to_vec(),
    }
}
