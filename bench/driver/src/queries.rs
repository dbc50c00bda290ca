//! Timed queries: boxes of open arrays, one after another, checked afterwards.
//!
//! Invariant: the time of a query covers the facade's read alone; answers are kept, so that
//! checking them is a request of its own.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use hyperslab::{
    Array, Error, Group, Node, Query, Region, Result, Selection, Session, Shape, block_on,
};
use hyperslab_sim::cell_value;
use serde::Deserialize;

use crate::cells::file_error;
use crate::clock::{Clock, Took};

/// A query as the harness names it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Asked {
    /// Which of the open arrays.
    #[serde(default)]
    array: usize,
    /// First and one past the last index of each dimension.
    #[serde(rename = "box")]
    sides: Vec<(u64, u64)>,
}

/// A query of a dataset by its name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NamedQuery {
    dataset: String,
    /// First and one past the last index of each dimension.
    #[serde(rename = "box")]
    sides: Vec<(u64, u64)>,
}

/// Runs queries of datasets below a group, one after another or as one; returns the time of all and
/// the answers, one behind the other.
pub(crate) fn run_named(
    session: &Session,
    group: &Group,
    asked: &[NamedQuery],
    together: bool,
) -> Result<(Took, Vec<u8>)> {
    let mut answers = Vec::new();
    let clock = Clock::start();
    if together {
        let mut query = Query::new();
        for asked in asked {
            let array = dataset(group, &asked.dataset)?;
            query = query.with(&array, Selection::region(&region(&asked.sides)?));
        }
        answers = block_on(session.read(&query))?;
    } else {
        for asked in asked {
            let array = dataset(group, &asked.dataset)?;
            let selection = Selection::region(&region(&asked.sides)?);
            answers.push(block_on(array.read(&selection))?);
        }
    }
    Ok((clock.stop(), answers.concat()))
}

fn dataset(group: &Group, path: &str) -> Result<Array> {
    match block_on(group.node(path))? {
        Node::Array(array) => Ok(array),
        Node::Group(_) => Err(Error::invalid(format!("{path} is a group"))),
    }
}

/// The cells that a query returned.
#[derive(Debug)]
pub(crate) struct Answered {
    array: usize,
    region: Region,
    cells: Vec<u8>,
}

/// Runs the queries; returns the time of each and the answers.
pub(crate) fn run(arrays: &[Array], asked: &[Asked]) -> Result<(Vec<Took>, Vec<Answered>)> {
    let mut times = Vec::with_capacity(asked.len());
    let mut answers = Vec::with_capacity(asked.len());
    for query in asked {
        let array = open(arrays, query.array)?;
        let region = query.region()?;
        let selection = Selection::region(&region);
        let clock = Clock::start();
        let cells = block_on(array.read(&selection))?;
        times.push(clock.stop());
        answers.push(Answered {
            array: query.array,
            region,
            cells,
        });
    }
    Ok((times, answers))
}

impl Asked {
    fn region(&self) -> Result<Region> {
        region(&self.sides)
    }
}

fn region(sides: &[(u64, u64)]) -> Result<Region> {
    let start: Vec<u64> = sides.iter().map(|side| side.0).collect();
    let shape = sides.iter().map(|side| side.1.saturating_sub(side.0));
    Region::new(start, shape.collect::<Vec<u64>>())
}

impl Answered {
    /// Bytes of the answer.
    pub(crate) fn num_bytes(&self) -> u64 {
        self.cells.len() as u64
    }
}

/// Compares answers with files that hold the cells of each array; returns how many answers differ.
pub(crate) fn differ_from_files(
    arrays: &[Array],
    answers: &[Answered],
    files: &[String],
) -> Result<u64> {
    let mut wrong = 0;
    for answer in answers {
        let array = open(arrays, answer.array)?;
        let path = files
            .get(answer.array)
            .ok_or_else(|| Error::invalid("there is no file for an array"))?;
        let file = File::open(path).map_err(file_error("read", path))?;
        let shape = array.shape();
        let cell = cell_bytes(answer)?;
        let mut want = Vec::new();
        let mut same = true;
        for (row, first) in rows(&shape, answer)? {
            want.resize(row.len(), 0);
            file.read_exact_at(&mut want, first * cell)
                .map_err(file_error("read", path))?;
            same &= row == want;
        }
        wrong += u64::from(!same);
    }
    Ok(wrong)
}

/// Compares answers of computed int32 arrays with their closed form; returns how many differ.
pub(crate) fn differ_from_closed_form(arrays: &[Array], answers: &[Answered]) -> Result<u64> {
    let mut wrong = 0;
    for answer in answers {
        let shape = open(arrays, answer.array)?.shape();
        if cell_bytes(answer)? != 4 {
            return Err(Error::invalid("only int32 has a closed form here"));
        }
        let same = rows(&shape, answer)?.all(|(row, first)| {
            row.chunks_exact(4)
                .zip(first..)
                .all(|(cell, place)| cell == cell_value(place).to_le_bytes())
        });
        wrong += u64::from(!same);
    }
    Ok(wrong)
}

fn open(arrays: &[Array], index: usize) -> Result<&Array> {
    arrays
        .get(index)
        .ok_or_else(|| Error::invalid(format!("no array number {index} is open")))
}

fn cell_bytes(answer: &Answered) -> Result<u64> {
    answer
        .num_bytes()
        .checked_div(answer.region.num_cells())
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| Error::invalid("an answer without cells cannot be checked"))
}

/// The rows of an answer, each with the row-major place of its first cell in the array.
fn rows<'a>(
    shape: &'a Shape,
    answer: &'a Answered,
) -> Result<impl Iterator<Item = (&'a [u8], u64)> + 'a> {
    let sides = Shape::new(answer.region.shape().iter().copied())?;
    let cells = sides.last().copied().unwrap_or(1).max(1);
    let bytes = (cells * cell_bytes(answer)?) as usize;
    Ok(answer
        .cells
        .chunks_exact(bytes)
        .zip(0u64..)
        .map(move |(row, number)| {
            let local = sides.coords_of(number * cells);
            let coords: Vec<u64> = local
                .iter()
                .zip(answer.region.start())
                .map(|(local, start)| local + start)
                .collect();
            (row, shape.offset_of(&coords))
        }))
}

#[cfg(test)]
mod tests {
    use hyperslab::{ArraySpec, Session, numpy};

    use super::*;

    fn array(url: &str) -> Array {
        let shape = Shape::new([6, 10]).unwrap();
        let dtype = numpy::parse_dtype("int32").unwrap().dtype;
        let cells = (0..60).flat_map(|place| cell_value(place).to_le_bytes());
        let session = Session::default();
        block_on(async {
            let spec = ArraySpec::new(shape, dtype);
            let array = session.create_array(url, spec, false).await?;
            array.write(&Selection::All, cells.collect()).await?;
            Ok::<_, Error>(array)
        })
        .unwrap()
    }

    #[test]
    fn answers_are_timed_and_checked() {
        let arrays = [array("memory://queries/a.zarr")];
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cells").to_str().unwrap().to_owned();
        let cells: Vec<u8> = (0..60)
            .flat_map(|place| cell_value(place).to_le_bytes())
            .collect();
        std::fs::write(&path, &cells).unwrap();
        let asked: Vec<Asked> = serde_json::from_str(
            r#"[{"box": [[1, 4], [2, 9]]}, {"array": 0, "box": [[5, 6], [0, 10]]}]"#,
        )
        .unwrap();
        let (times, mut answers) = run(&arrays, &asked).unwrap();
        assert_eq!(times.len(), 2);
        assert_eq!(answers[0].num_bytes(), 3 * 7 * 4);
        let files = [path];
        assert_eq!(differ_from_files(&arrays, &answers, &files).unwrap(), 0);
        assert_eq!(differ_from_closed_form(&arrays, &answers).unwrap(), 0);
        answers[1].cells[39] ^= 1;
        assert_eq!(differ_from_files(&arrays, &answers, &files).unwrap(), 1);
        assert_eq!(differ_from_closed_form(&arrays, &answers).unwrap(), 1);
        assert!(differ_from_files(&arrays, &answers, &[]).is_err());
        assert!(run(&[], &asked).is_err());
    }
}
