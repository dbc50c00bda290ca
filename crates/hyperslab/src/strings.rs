//! Reads strings and byte strings of variable length, which are cells by themselves.

use std::sync::Arc;

use bytes::Bytes;
use hyperslab_format::{ObjectPieces, Piece};
use hyperslab_index::{Selection, Target};

use crate::array::{Array, State};
use crate::deliver::{Ready, in_shard, prepare};
use crate::fetch::Fetched;
use crate::scatter::scatter_strings;
use crate::tasks::{Tasks, on_core};
use crate::{Error, Result, mosaic, replicas};

/// Reads a selection of strings.
pub(crate) async fn run(
    array: &Array,
    state: Arc<State>,
    selection: &Selection,
) -> Result<Vec<Bytes>> {
    array.verify().await?;
    let state = match state.pending {
        true => array.ready().await?,
        false => state,
    };
    if let Some(mosaic) = &state.mosaic {
        return mosaic::strings(mosaic, &state, selection).await;
    }
    if array.may_have_replicas()
        && let Some(cells) = replicas::read_strings(array, &state, selection).await?
    {
        return Ok(cells);
    }
    let shape = selection.result_shape(&state.meta.shape);
    let target = Target::packed(&shape[..]);
    let mut tasks: Tasks<Vec<(Piece, Vec<Bytes>)>> = Tasks::new(&array.inner().session)?;
    for object in state.resolver.objects(selection)? {
        let permit = tasks.memory(array.flight_bytes(&state, &object)).await?;
        let (array, state) = (array.clone(), state.clone());
        tasks.spawn(async move {
            let named = array.name_chunk(&object);
            let answer = async {
                let (object, fetched) = if array.inner().open.lazy {
                    let fetched = array.fetch_file(&state, &object.key).await?;
                    (object, fetched)
                } else {
                    array.fetch_alone(&state, object).await?
                };
                let session = array.inner().session.clone();
                on_core(&session, move || strings_of(&state, object, fetched)).await
            };
            let answer = answer.await.map_err(named)?;
            drop(permit);
            Ok(answer)
        })?;
    }
    let mut out = vec![Bytes::new(); shape.num_cells() as usize];
    for (piece, cells) in tasks.results().await?.into_iter().flatten() {
        scatter_strings(&mut out, &target, &cells, &piece.part, &state.order)?;
    }
    match &state.file {
        Some(file) => file.values(out).await,
        None => Ok(out),
    }
}

fn strings_of(
    state: &State,
    object: ObjectPieces,
    fetched: Fetched,
) -> Result<Vec<(Piece, Vec<Bytes>)>> {
    // Places in a heap are empty where nobody wrote one; who reads the heap knows what that means.
    let fill = match &state.file {
        Some(file) if file.has_heap() => &[],
        _ => state.meta.fill.bytes(),
    };
    let count = state.unit.num_cells() as usize;
    let empty = || vec![Bytes::copy_from_slice(fill); count];
    let ready = prepare(state, fetched)?;
    let mut out = Vec::with_capacity(object.pieces.len());
    for piece in object.pieces {
        let chain = state.chain(&piece);
        let cells = match &ready {
            Ready::Absent => empty(),
            Ready::Unit(body) => {
                chain.decode_strings(body.clone().into_bytes()?, &state.stored, fill)?
            }
            Ready::Raw(_) => return Err(Error::internal("strings were read as raw cells")),
            Ready::Shard(index, bodies) => match in_shard(&piece, index.as_ref(), bodies)? {
                None => empty(),
                Some((body, range)) => {
                    let mut bytes = vec![0; (range.end - range.start) as usize];
                    body.read_at(range.start, &mut bytes)?;
                    chain.decode_strings(bytes.into(), &state.stored, fill)?
                }
            },
        };
        out.push((piece, cells));
    }
    Ok(out)
}
