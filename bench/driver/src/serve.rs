//! The loop: one request per line in, one answer per line out.

use std::io::{BufRead, Write};

use hyperslab::{
    Array, ArraySpec, Compression, DataType, Error, FillValue, Group, Hyperslab, Node, Region,
    Result, Selection, Session, Shape, block_on,
};
use serde_json::{Value, json};

use crate::cells::Cells;
use crate::clock::{Clock, Took};
use crate::protocol::{Answer, Request, Spec};
use crate::queries::{self, Answered, Asked};
use crate::{floors, pattern};

/// What one request leaves for the next.
#[derive(Default)]
struct Worker {
    session: Session,
    array: Option<Array>,
    source: Option<Cells>,
    result: Option<Cells>,
    arrays: Vec<Array>,
    group: Option<Group>,
    answers: Vec<Answered>,
}

/// Serves until the input ends.
pub(crate) fn run() -> Result<()> {
    let mut worker = Worker::default();
    let mut out = std::io::stdout();
    let lost = |e| Error::unavailable(format!("the harness is gone: {e}"));
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(lost)?;
        let request = serde_json::from_str::<Request>(&line)
            .map_err(|e| Error::invalid(format!("the request is not understood: {e}")));
        let answer = match request.and_then(|request| worker.answer(request)) {
            Ok(value) => Answer::Ok(value),
            Err(error) => Answer::Error(error.to_string()),
        };
        let text = serde_json::to_string(&answer)
            .map_err(|e| Error::internal(format!("an answer has no JSON: {e}")))?;
        writeln!(out, "{text}")
            .and_then(|()| out.flush())
            .map_err(lost)?;
    }
    Ok(())
}

impl Worker {
    fn answer(&mut self, request: Request) -> Result<Value> {
        match request {
            Request::Versions {} => Ok(json!({"hyperslab": env!("CARGO_PKG_VERSION")})),
            Request::Open { url } => {
                self.array = Some(block_on(self.session.open_array(&url))?);
                Ok(json!({}))
            }
            Request::Configure { settings } => {
                self.session = Session::new(settings.options()?);
                Ok(json!({}))
            }
            Request::OpenAll { urls } => {
                self.arrays = block_on(futures::future::try_join_all(
                    urls.iter().map(|url| self.session.open_array(url)),
                ))?;
                Ok(json!({}))
            }
            Request::Queries { queries } => self.query(&queries),
            Request::CheckQueries { files } => self.check_queries(&files),
            Request::Create { url, spec } => {
                let spec = array_spec(spec)?;
                self.array = Some(block_on(self.session.create_array(&url, spec, false))?);
                Ok(json!({}))
            }
            Request::Load { path, data_type } => {
                self.source = None;
                let variable = DataType::from_json(&data_type)?.is_variable();
                self.source = Some(Cells::load(&path, variable)?);
                Ok(json!({}))
            }
            Request::Write { shape } => self.write(&shape),
            Request::Read {} => self.read(),
            Request::ReadAgain {} => self.read_again(),
            Request::Dump { path } => {
                self.read_cells()?.dump(&path)?;
                Ok(json!({}))
            }
            Request::Verify { path } => {
                let difference = self.read_cells()?.first_difference(&path)?;
                Ok(json!({"equal": difference.is_none(), "first_difference": difference}))
            }
            Request::OpenFile { url } => {
                let clock = Clock::start();
                let opened = block_on(self.session.open(&url))?;
                let took = clock.stop();
                let Node::Group(group) = opened else {
                    return Err(Error::invalid(format!("{url} is no group")));
                };
                self.group = Some(group);
                Ok(took.answer(0))
            }
            Request::Walk { url } => {
                let clock = Clock::start();
                let Node::Group(group) = block_on(self.session.open(&url))? else {
                    return Err(Error::invalid(format!("{url} is no group")));
                };
                let nodes = block_on(group.walk())?;
                let took = clock.stop();
                let is_array = |(_, node): &&(String, Node)| matches!(node, Node::Array(_));
                let datasets = nodes.iter().filter(is_array).count();
                self.group = Some(group);
                Ok(json!({"seconds": took.seconds(), "datasets": datasets}))
            }
            Request::QueryNames {
                queries,
                together,
                path,
            } => {
                let group = self.group.as_ref();
                let group = group.ok_or_else(|| Error::invalid("no file was walked"))?;
                let (took, cells) = queries::run_named(&self.session, group, &queries, together)?;
                let bytes = cells.len() as u64;
                Cells::Fixed(cells).dump(&path)?;
                Ok(took.answer(bytes))
            }
            Request::Describe { url } => self.describe(&url),
            Request::Boxes { boxes, path } => self.read_boxes(&boxes, &path),
            Request::Release {} => {
                self.result = None;
                Ok(json!({}))
            }
            Request::Remove { url } => {
                self.array = None;
                let objects = block_on(self.session.remove(&url, &()))?;
                Ok(json!({"objects": objects}))
            }
            Request::Fill {} => {
                let clock = Clock::start();
                pattern::fill(self.open()?)?;
                Ok(clock.stop().answer(0))
            }
            Request::Check { boxes, seed } => {
                let (cells, different) = pattern::check(self.open()?, boxes, seed)?;
                Ok(json!({"cells": cells, "different": different}))
            }
            Request::PlainRead { folder } => {
                let (took, bytes) = floors::read_files(&folder)?;
                Ok(took.answer(bytes))
            }
            Request::PlainWrite {
                folder,
                file_bytes,
                total_bytes,
            } => {
                let Some(Cells::Fixed(cells)) = &self.source else {
                    return Err(Error::invalid("no cells of fixed size are loaded"));
                };
                let cells = cells.get(..total_bytes as usize).ok_or_else(|| {
                    Error::invalid(format!(
                        "{} bytes are loaded, not {total_bytes}",
                        cells.len()
                    ))
                })?;
                Ok(floors::write_files(&folder, file_bytes, cells)?.answer(total_bytes))
            }
            Request::PlainCopy { bytes } => Ok(floors::copy_memory(bytes)?.answer(bytes)),
        }
    }

    fn describe(&self, url: &str) -> Result<Value> {
        let root = block_on(self.session.open(url))?;
        let mut nodes = match &root {
            Node::Group(group) => block_on(group.walk())?,
            Node::Array(_) => Vec::new(),
        };
        nodes.push((String::new(), root));
        let describe = |node: &Node| match node {
            Node::Group(group) => json!({"attributes": group.attributes()}),
            Node::Array(array) => {
                let meta = array.meta();
                json!({
                    "shape": &meta.shape[..],
                    "data_type": meta.dtype.to_json(),
                    "attributes": meta.attributes,
                    "dimension_names": meta.dimension_names,
                    "variable": meta.dtype.is_variable(),
                })
            }
        };
        let all = nodes
            .iter()
            .map(|(path, node)| (path.clone(), describe(node)));
        Ok(Value::Object(all.collect()))
    }

    fn read_boxes(&self, boxes: &[Vec<[u64; 3]>], path: &str) -> Result<Value> {
        let array = self.open()?;
        let mut all = Vec::new();
        for asked in boxes {
            let mut start = Vec::new();
            let mut stride = Vec::new();
            let mut count = Vec::new();
            for [first, stop, step] in asked {
                start.push(*first);
                stride.push((*step).max(1));
                count.push(stop.saturating_sub(*first).div_ceil((*step).max(1)));
            }
            let block = vec![1; asked.len()];
            let slab = Hyperslab::new(&start, &stride, &count, &block)?;
            let selection = Selection::Hyperslab(slab);
            let cells = match array.dtype().is_variable() {
                true => Cells::Strings(block_on(array.read_strings(&selection))?),
                false => Cells::Fixed(block_on(array.read(&selection))?),
            };
            all.extend_from_slice(&cells.to_bytes());
        }
        let bytes = all.len();
        Cells::Fixed(all).dump(path)?;
        Ok(json!({"bytes": bytes}))
    }

    fn open(&self) -> Result<&Array> {
        self.array
            .as_ref()
            .ok_or_else(|| Error::invalid("no array is open"))
    }

    fn read_cells(&self) -> Result<&Cells> {
        self.result
            .as_ref()
            .ok_or_else(|| Error::invalid("nothing was read"))
    }

    fn query(&mut self, asked: &[Asked]) -> Result<Value> {
        self.answers.clear();
        let fallbacks = self.session.fallbacks();
        let (times, answers) = queries::run(&self.arrays, asked)?;
        self.answers = answers;
        Ok(json!({
            "seconds": times.iter().map(Took::seconds).collect::<Vec<_>>(),
            "cpu_seconds": times.iter().map(Took::cpu_seconds).sum::<f64>(),
            "bytes": self.answers.iter().map(Answered::num_bytes).sum::<u64>(),
            "fallbacks": self.session.fallbacks() - fallbacks,
        }))
    }

    fn check_queries(&mut self, files: &[String]) -> Result<Value> {
        let answers = std::mem::take(&mut self.answers);
        let wrong = match files {
            [] => queries::differ_from_closed_form(&self.arrays, &answers)?,
            files => queries::differ_from_files(&self.arrays, &answers, files)?,
        };
        Ok(json!({"checked": answers.len(), "wrong": wrong}))
    }

    fn write(&mut self, shape: &[u64]) -> Result<Value> {
        let array = self.open()?;
        let source = self
            .source
            .as_ref()
            .ok_or_else(|| Error::invalid("no cells are loaded"))?;
        let selection = Selection::region(&Region::new(vec![0; shape.len()], shape)?);
        let bytes = source.num_bytes();
        let took = match source {
            Cells::Fixed(cells) => {
                let clock = Clock::start();
                array.write_from(&selection, cells)?;
                clock.stop()
            }
            Cells::Strings(cells) => {
                let cells = cells.clone();
                let clock = Clock::start();
                block_on(array.write_strings(&selection, cells))?;
                clock.stop()
            }
        };
        Ok(took.answer(bytes))
    }

    fn read(&mut self) -> Result<Value> {
        self.result = None;
        let array = self.open()?;
        let (took, cells) = if array.dtype().is_variable() {
            let clock = Clock::start();
            let cells = block_on(array.read_strings(&Selection::All))?;
            (clock.stop(), Cells::Strings(cells))
        } else {
            let clock = Clock::start();
            let cells = block_on(array.read(&Selection::All))?;
            (clock.stop(), Cells::Fixed(cells))
        };
        let bytes = cells.num_bytes();
        self.result = Some(cells);
        Ok(took.answer(bytes))
    }

    fn read_again(&mut self) -> Result<Value> {
        let Some(Cells::Fixed(mut buffer)) = self.result.take() else {
            return Err(Error::invalid("no buffer of cells of fixed size is kept"));
        };
        let array = self.open()?;
        // Stale cells must not pass for a right answer.
        buffer.fill(0xa5);
        let clock = Clock::start();
        array.read_into(&Selection::All, &mut buffer)?;
        let took = clock.stop();
        let bytes = buffer.len() as u64;
        self.result = Some(Cells::Fixed(buffer));
        Ok(took.answer(bytes))
    }
}

/// The spec with nothing left to defaults.
fn array_spec(spec: Spec) -> Result<ArraySpec> {
    let dtype = DataType::from_json(&spec.data_type)?;
    let mut out = ArraySpec::new(Shape::new(spec.shape)?, dtype.clone());
    out.chunks = Some(spec.chunk_shape);
    out.shards = Some(Vec::new());
    out.fill = Some(FillValue::from_json(&dtype, &spec.fill_value)?);
    out.compression = Compression::Chain(spec.codecs);
    Ok(out)
}
