//! A clean session's look at what a killed writer left.

use hyperslab::{Array, ErrorKind, Node, Options, Region, Selection, Session};
use serde_json::Value;

use super::workload::{ARRAYS, ArrayState, Step, Workload};
use crate::servers::Place;
use crate::{Failure, Outcome, Wanted, ensure, same};

/// Checks a hierarchy whose writer died in step `done`; true if the consolidated copy is behind.
pub(super) async fn inspect(
    place: &Place,
    workload: &Workload,
    name: &str,
    done: usize,
) -> Outcome<bool> {
    let before = &workload.states[done];
    let after = workload.states.get(done + 1).unwrap_or(before);
    let session = Session::new(Options::default());
    let url = place.mount_store(&session, name, place.store(name)?)?;

    for (at, path) in ARRAYS.iter().enumerate() {
        let named = |failure: Failure| failure.within(path);
        let states = (&before.arrays[at], &after.arrays[at]);
        match session.open_array(&format!("{url}/{path}")).await {
            Err(e) if e.is_not_found() && states.0.is_none() => {}
            Err(e) => return Err(named(e.into())),
            Ok(array) => check_array(&array, states.0, states.1)
                .await
                .map_err(named)?,
        }
    }
    let root = match session.open_group(&url).await {
        Err(e) if e.is_not_found() && !before.root => return Ok(false),
        other => other?,
    };
    let mut behind = false;
    for (path, node) in root.walk().await? {
        let (Node::Array(array), Some(at)) = (node, ARRAYS.iter().position(|name| *name == path))
        else {
            continue;
        };
        match array.read(&Selection::All).await {
            // The copy is behind, and the reader was told so.
            Err(e) if e.kind() == ErrorKind::Conflict => behind = true,
            Err(e) => return Err(Failure::from(e).within(format!("{path} from the copy"))),
            Ok(_) => check_array(&array, &before.arrays[at], &after.arrays[at])
                .await
                .map_err(|failure| failure.within(format!("{path} from the copy")))?,
        }
    }
    heal(place, workload, name, done).await?;
    Ok(behind)
}

async fn check_array(array: &Array, before: &ArrayState, after: &ArrayState) -> Outcome {
    let states: Vec<_> = [before, after].into_iter().flatten().collect();
    let sides = array.shape().to_vec();
    ensure(
        states.iter().any(|(model, _)| model.sides() == sides),
        || format!("its shape {sides:?} is neither that before nor that after"),
    )?;
    let n = array.meta().attributes.get("n").and_then(Value::as_u64);
    ensure(states.iter().any(|(_, number)| Some(*number) == n), || {
        format!("its attributes {n:?} are neither those before nor those after")
    })?;
    // A chunk that a smaller shape cuts off reads as fill values afterwards.
    let models: Vec<_> = states
        .iter()
        .map(|(model, _)| model.resized(&sides))
        .collect();
    let chunk = array.meta().chunk_shape.to_vec();
    for region in Region::whole(&array.shape()).split(&chunk) {
        let found = array.read(&Selection::region(&region)).await?;
        let wanted = Wanted::region(region.start(), region.shape());
        ensure(
            models.iter().any(|model| model.read(&wanted) == found),
            || format!("the chunk at {region} is neither as before nor as after"),
        )?;
    }
    Ok(())
}

/// The interrupted step can be done again, and consolidating brings the copy up to date.
async fn heal(place: &Place, workload: &Workload, name: &str, done: usize) -> Outcome {
    let session = Session::new(Options::default());
    let url = place.mount_store(&session, name, place.store(name)?)?;
    let (Some(step), Some(after)) = (workload.steps.get(done), workload.states.get(done + 1))
    else {
        return Ok(());
    };
    // Appending again may append twice, and creating again may find the array.
    if let Step::Write(array, ..) | Step::Resize(array, _) | Step::Attributes(array, _) = step {
        workload
            .step(&session, &url, step)
            .await
            .map_err(|e| Failure::from(e).within("done again"))?;
        let Some((model, n)) = &after.arrays[*array] else {
            return Ok(());
        };
        let found = session
            .open_array(&format!("{url}/{}", ARRAYS[*array]))
            .await?;
        same(
            "shape after it was done again",
            found.shape().to_vec(),
            model.sides().to_vec(),
        )?;
        let cells = found.read(&Selection::All).await?;
        ensure(cells == model.cells(), || {
            "other cells after it was done again".into()
        })?;
        same(
            "n after it was done again",
            found.meta().attributes.get("n").and_then(Value::as_u64),
            Some(*n),
        )?;
    }
    let root = session.open_group(&url).await?;
    root.consolidate().await?;
    let root = session.open_group(&url).await?;
    same(
        "disagreements after consolidation",
        root.disagreements().await?,
        Vec::new(),
    )?;
    for (path, node) in root.walk().await? {
        if let Node::Array(array) = node {
            let read = array.read(&Selection::All).await;
            read.map_err(|e| Failure::from(e).within(format!("{path} after consolidation")))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run;

    /// The whole workload in memory, and then one object changed behind everybody's back.
    fn tampered(
        name: &str,
        change: impl AsyncFnOnce(&hyperslab_store::StoreRef) -> Outcome,
    ) -> Outcome<bool> {
        let place = Place::memory(name);
        run(async {
            let workload = Workload::new()?;
            let session = Session::default();
            let url = place.mount_store(&session, "x.zarr", place.store("x.zarr")?)?;
            let (done, error) = workload.run(&session, &url).await?;
            assert!(error.is_none(), "{error:?}");
            change(&place.store("x.zarr")?).await?;
            inspect(&place, &workload, "x.zarr", done).await
        })
    }

    #[test]
    fn what_is_whole_passes() {
        assert!(!tampered("inspect-whole", async |_| Ok(())).unwrap());
    }

    #[test]
    fn lost_chunks_and_shapes_are_found() {
        let failure = tampered("inspect-chunk", async |store| {
            Ok(store.delete("group/plain/c/0/0").await?)
        });
        assert!(
            failure
                .unwrap_err()
                .to_string()
                .contains("neither as before nor as after")
        );
        let failure = tampered("inspect-array", async |store| {
            Ok(store.delete("group/sharded/zarr.json").await?)
        });
        assert!(failure.unwrap_err().to_string().contains("group/sharded"));
    }
}
