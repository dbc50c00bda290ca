//! The workload that is killed: a hierarchy of two arrays, written, changed, resized and appended
//! to, with the state of the model after every step.

use hyperslab::{ArraySpec, DataType, Error, Result, Session, Shape};
use hyperslab_index::DimSlab;
use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};
use serde_json::{Map, Value, json};

use crate::{Model, Outcome, Wanted};

/// The arrays of the workload.
pub(super) const ARRAYS: [&str; 2] = ["group/plain", "group/sharded"];

/// One step; arrays are named by their place in [`ARRAYS`].
#[derive(Debug, Clone)]
pub(super) enum Step {
    Group,
    Create(usize),
    Write(usize, Wanted, Vec<u8>),
    Resize(usize, Vec<u64>),
    Append(usize, usize, Vec<u8>),
    Attributes(usize, u64),
}

/// What the model says of one array: its cells and its attribute `n`.
pub(super) type ArrayState = Option<(Model, u64)>;

/// What the model says of the hierarchy.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    pub(super) root: bool,
    pub(super) arrays: [ArrayState; 2],
}

/// The steps, and the states between them: `states[i]` is before step `i`.
pub(super) struct Workload {
    pub(super) steps: Vec<Step>,
    pub(super) states: Vec<State>,
}

fn spec(array: usize) -> Result<ArraySpec> {
    let (sides, dtype) = if array == 0 {
        ([20, 30], DataType::Int(4))
    } else {
        ([24, 24], DataType::UInt(2))
    };
    let mut spec = ArraySpec::new(Shape::new(sides)?, dtype);
    spec.chunks = Some(if array == 0 { vec![7, 10] } else { vec![4, 4] });
    spec.shards = Some(if array == 0 { vec![] } else { vec![12, 12] });
    spec.attributes = number(0);
    Ok(spec)
}

fn number(n: u64) -> Map<String, Value> {
    json!({"n": n}).as_object().cloned().unwrap_or_default()
}

impl Workload {
    pub(super) fn new() -> Outcome<Self> {
        let strided = |start, stride, count, block| DimSlab {
            start,
            stride,
            count,
            block,
        };
        let grid = Wanted::Slabs(vec![vec![strided(1, 5, 3, 2), strided(2, 9, 2, 5)]]);
        let union = Wanted::Slabs(vec![
            vec![strided(3, 1, 9, 1), strided(0, 1, 5, 1)],
            vec![strided(8, 1, 4, 1), strided(2, 1, 20, 1)],
        ]);
        let points = Wanted::Points((0..12).map(|i| vec![i, 23 - 2 * i]).collect());
        let mut workload = Workload {
            steps: Vec::new(),
            states: vec![State::default()],
        };
        workload.push(Step::Group)?;
        workload.push(Step::Create(0))?;
        workload.write(0, Wanted::All)?;
        workload.push(Step::Create(1))?;
        workload.write(1, Wanted::All)?;
        workload.write(0, grid.clone())?;
        workload.write(1, grid)?;
        workload.push(Step::Resize(0, vec![16, 24]))?;
        workload.push(Step::Resize(1, vec![30, 24]))?;
        workload.append(0, 0, 8)?;
        workload.append(1, 1, 6)?;
        workload.push(Step::Attributes(0, 1))?;
        workload.write(1, union)?;
        workload.write(1, points)?;
        workload.push(Step::Resize(1, vec![10, 18]))?;
        workload.push(Step::Resize(1, vec![20, 25]))?;
        workload.append(0, 1, 3)?;
        workload.push(Step::Attributes(1, 2))?;
        workload.write(0, Wanted::region(&[2, 3], &[17, 21]))?;
        Ok(workload)
    }

    /// What a step does, for messages.
    pub(super) fn name(&self, step: usize) -> String {
        match self.steps.get(step) {
            None => "after the last step".to_owned(),
            Some(Step::Write(array, wanted, _)) => {
                format!("step {step}, write {wanted:?} of {}", ARRAYS[*array])
            }
            Some(Step::Append(array, axis, _)) => {
                format!("step {step}, append to {} along {axis}", ARRAYS[*array])
            }
            Some(other) => format!("step {step}, {other:?}"),
        }
    }

    fn model(&self, array: usize) -> Outcome<Model> {
        let state = self
            .states
            .last()
            .and_then(|state| state.arrays[array].clone());
        Ok(state
            .ok_or_else(|| Error::internal("the workload changes an array before it exists"))?
            .0)
    }

    fn random(&self, array: usize, cells: usize) -> Vec<u8> {
        let mut bytes = vec![0; cells * if array == 0 { 4 } else { 2 }];
        StdRng::seed_from_u64(self.steps.len() as u64).fill_bytes(&mut bytes);
        bytes
    }

    fn write(&mut self, array: usize, wanted: Wanted) -> Outcome {
        let cells = wanted.cells(self.model(array)?.sides()).len();
        let bytes = self.random(array, cells);
        self.push(Step::Write(array, wanted, bytes))
    }

    fn append(&mut self, array: usize, axis: usize, count: u64) -> Outcome {
        let mut sides = self.model(array)?.sides().to_vec();
        sides[axis] = count;
        let bytes = self.random(array, sides.iter().product::<u64>() as usize);
        self.push(Step::Append(array, axis, bytes))
    }

    /// Adds a step and the state after it.
    fn push(&mut self, step: Step) -> Outcome {
        let mut state = self.states.last().cloned().unwrap_or_default();
        match &step {
            Step::Group => state.root = true,
            Step::Create(array) => {
                let spec = spec(*array)?;
                let cell = spec.dtype.cell_bytes().unwrap_or(1) as usize;
                state.arrays[*array] = Some((Model::new(&spec.shape, &vec![0; cell]), 0));
            }
            Step::Write(array, wanted, bytes) => {
                let mut model = self.model(*array)?;
                model.write(wanted, bytes);
                set(&mut state.arrays[*array], model);
            }
            Step::Resize(array, sides) => {
                let model = self.model(*array)?.resized(sides);
                set(&mut state.arrays[*array], model);
            }
            Step::Append(array, axis, bytes) => {
                let model = self.model(*array)?;
                let mut start = vec![0; 2];
                start[*axis] = model.sides()[*axis];
                let other = model.sides()[1 - *axis];
                let count = bytes.len() as u64 / other / if *array == 0 { 4 } else { 2 };
                let mut added = model.sides().to_vec();
                added[*axis] = count;
                let mut sides = model.sides().to_vec();
                sides[*axis] += count;
                let mut model = model.resized(&sides);
                model.write(&Wanted::region(&start, &added), bytes);
                set(&mut state.arrays[*array], model);
            }
            Step::Attributes(array, n) => {
                if let Some((_, number)) = &mut state.arrays[*array] {
                    *number = *n;
                }
            }
        }
        self.steps.push(step);
        self.states.push(state);
        Ok(())
    }

    /// Runs the steps up to the first error: how many were done, and the error.
    pub(super) async fn run(
        &self,
        session: &Session,
        root: &str,
    ) -> Outcome<(usize, Option<Error>)> {
        for (done, step) in self.steps.iter().enumerate() {
            if let Err(error) = self.step(session, root, step).await {
                return Ok((done, Some(error)));
            }
        }
        Ok((self.steps.len(), None))
    }

    /// Runs one step.
    pub(super) async fn step(&self, session: &Session, root: &str, step: &Step) -> Result<()> {
        let open = async |array: usize| {
            session
                .open_array(&format!("{root}/{}", ARRAYS[array]))
                .await
        };
        match step {
            Step::Group => session.create_group(root, number(0)).await.map(drop),
            Step::Create(array) => {
                let url = format!("{root}/{}", ARRAYS[*array]);
                session
                    .create_array(&url, spec(*array)?, false)
                    .await
                    .map(drop)
            }
            Step::Write(array, wanted, bytes) => {
                let selection = wanted
                    .selection(2)
                    .map_err(|e| Error::internal(e.to_string()))?;
                open(*array).await?.write(&selection, bytes.clone()).await
            }
            Step::Resize(array, sides) => open(*array).await?.resize(sides).await,
            Step::Append(array, axis, bytes) => open(*array)
                .await?
                .append(*axis, bytes.clone())
                .await
                .map(drop),
            Step::Attributes(array, n) => open(*array).await?.set_attributes(number(*n)).await,
        }
    }
}

fn set(state: &mut ArrayState, model: Model) {
    if let Some((cells, _)) = state {
        *cells = model;
    }
}
