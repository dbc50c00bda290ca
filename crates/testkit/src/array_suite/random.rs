//! Random arrays of every combination: random writes, random reads, other shapes.

use hyperslab::{Array, Consolidated, ErrorKind, Mode, Options, Session};
use rand::Rng;
use rand::rngs::StdRng;
use serde_json::json;

use super::cases::{Case, check_axes};
use super::cell::random_cells;
use super::{check_all, check_read, fresh};
use crate::servers::Place;
use crate::{Model, Outcome, Wanted, fails, same, within};

/// Arrays in one hierarchy; each adds to the size of its consolidated metadata.
const PER_ROOT: usize = 20;

pub(super) async fn check(place: &Place, cases: usize) -> Outcome {
    check_axes()?;
    for number in 0..cases {
        let case = Case::new(number)?;
        let name = case.name.clone();
        within(name, check_case(place, case, number)).await?;
    }
    Ok(())
}

/// Settings that change how the same cells are read.
fn options(number: usize) -> Options {
    let mut options = Options::default();
    match number % 4 {
        0 => {}
        1 => options.planner = Mode::Get,
        2 => options.planner = Mode::RangeFetch,
        _ => {
            options.cache_bytes = 1 << 20;
            options.memory = 1 << 14;
            options.consolidated = Consolidated::Ignore;
        }
    }
    options.write_empty = number.is_multiple_of(5);
    options
}

async fn check_case(place: &Place, case: Case, number: usize) -> Outcome {
    let Case {
        spec,
        fill,
        mut rng,
        ..
    } = case;
    let root = format!("random-{}.zarr", number / PER_ROOT);
    let (session, url) = fresh(place, &root, options(number))?;
    let url = format!("{url}/group/case {number}");
    let dtype = spec.dtype.clone();
    let array = session.create_array(&url, spec.clone(), false).await?;
    let again = session.create_array(&url, spec.clone(), false).await;
    fails("creating it twice", again, ErrorKind::Conflict)?;
    let mut model = Model::new(&spec.shape, &fill);
    within("new", check_all(&array, &model)).await?;

    for step in 0..5 {
        let wanted = Wanted::random(&mut rng, model.sides());
        let count = wanted.cells(model.sides()).len();
        let cells = random_cells(&mut rng, &dtype, &fill, count);
        write(&array, &mut model, &wanted, cells, step == 4).await?;
        for _ in 0..3 {
            let wanted = Wanted::random(&mut rng, model.sides());
            within(format!("step {step}"), check_read(&array, &model, &wanted)).await?;
        }
    }
    let (other, _) = fresh(place, &root, options(number + 1))?;
    within(
        "another session",
        check_all(&other.open_array(&url).await?, &model),
    )
    .await?;
    within("blocking reads", check_blocking(&array, &model)).await?;
    within("resize", check_resizes(&array, &mut model, &mut rng)).await?;
    within("append", check_append(&array, &mut model, &mut rng, &fill)).await?;
    within("attributes", check_attributes(&array, &other, &url)).await?;
    let (other, _) = fresh(place, &root, options(number + 2))?;
    within(
        "at the end",
        check_all(&other.open_array(&url).await?, &model),
    )
    .await?;
    if number.is_multiple_of(7) {
        let anew = session.create_array(&url, spec.clone(), true).await?;
        within(
            "made anew",
            check_all(&anew, &Model::new(&spec.shape, &fill)),
        )
        .await?;
    }
    Ok(())
}

/// Writes cells from an owned or a borrowed buffer, to the array and to the model.
async fn write(
    array: &Array,
    model: &mut Model,
    wanted: &Wanted,
    cells: Vec<u8>,
    borrowed: bool,
) -> Outcome {
    let selection = wanted.selection(model.sides().len())?;
    model.write(wanted, &cells);
    if borrowed {
        let array = array.clone();
        return on_thread(move || Ok(array.write_from(&selection, &cells)?)).await;
    }
    Ok(array.write(&selection, cells).await?)
}

/// The calls that block are for threads outside of any runtime.
async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Outcome<T> + Send + 'static,
) -> Outcome<T> {
    let (done, answer) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || done.send(work()).is_ok());
    answer.await?
}

async fn check_blocking(array: &Array, model: &Model) -> Outcome {
    let (array, expected) = (array.clone(), model.cells().to_vec());
    on_thread(move || {
        let mut found = vec![0xa5; expected.len()];
        array.read_into(&hyperslab::Selection::All, &mut found)?;
        same("read_into", found, expected)
    })
    .await
}

/// Up, down and up again: what was cut off does not come back.
async fn check_resizes(array: &Array, model: &mut Model, rng: &mut StdRng) -> Outcome {
    for _ in 0..3 {
        let sides: Vec<u64> = model
            .sides()
            .iter()
            .map(|side| rng.random_range(1..=side + side / 2 + 1))
            .collect();
        let before = model.sides().to_vec();
        array.resize(&sides).await?;
        *model = model.resized(&sides);
        within(format!("{before:?} to {sides:?}"), check_all(array, model)).await?;
    }
    Ok(())
}

async fn check_append(array: &Array, model: &mut Model, rng: &mut StdRng, fill: &[u8]) -> Outcome {
    let axis = rng.random_range(0..model.sides().len());
    let mut start = vec![0; model.sides().len()];
    start[axis] = model.sides()[axis];
    let mut added = model.sides().to_vec();
    added[axis] = rng.random_range(1..4);
    let count = added.iter().product::<u64>() as usize;
    let cells = random_cells(rng, &array.dtype(), fill, count);
    same(
        "where it was appended",
        array.append(axis, cells.clone()).await?,
        start[axis],
    )?;
    let mut sides = model.sides().to_vec();
    sides[axis] += added[axis];
    *model = model.resized(&sides);
    model.write(&Wanted::region(&start, &added), &cells);
    check_all(array, model).await
}

async fn check_attributes(array: &Array, other: &Session, url: &str) -> Outcome {
    let attributes =
        json!({"units": "K", "scale": 0.1, "名": ["ü", null, true], "deep": {"a": {"b": 1}}});
    let attributes = attributes.as_object().cloned().unwrap_or_default();
    array.set_attributes(attributes.clone()).await?;
    same("own", array.meta().attributes.clone(), attributes.clone())?;
    same(
        "another session's",
        other.open_array(url).await?.meta().attributes.clone(),
        attributes,
    )
}
