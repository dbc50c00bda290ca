//! References in Parquet: a folder with the metadata of all arrays, and tables of where chunks are.
//!
//! Under [`super`]. `.zmetadata` holds what Zarr says, and how many chunks a table has; the tables of an
//! array are `refs.0.parq`, `refs.1.parq` and so on in its folder, a row for each chunk in row-major
//! order. They are read when the array is, not before: there may be millions of rows.

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use hyperslab_format::references::{Reference, References};
use hyperslab_format::{ArrayMeta, join};
use hyperslab_store::{Get, StoreRef};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::{Field, Row};
use serde_json::{Map, Value};

use crate::{Error, Result};

/// Tables that are fetched at a time.
const CONCURRENT: usize = 16;

/// The folder of a set of tables, and what its metadata says.
#[derive(Debug)]
pub(super) struct Tables {
    store: StoreRef,
    rows: u64,
    /// Zarr's metadata, by key.
    pub(super) metadata: Vec<(String, Value)>,
}

impl Tables {
    /// Opens a folder of tables.
    pub(super) async fn open(store: &StoreRef) -> Result<Tables> {
        let got = store.get(".zmetadata", Get::default()).await?;
        let damaged = || {
            Error::data("this is no folder of references")
                .with_hint("it should have a .zmetadata with \"metadata\" and \"record_size\"")
        };
        let json: Value = serde_json::from_slice(&got.body.into_bytes()?).map_err(|_| damaged())?;
        let rows = json.get("record_size").and_then(Value::as_u64);
        let metadata = json.get("metadata").and_then(Value::as_object);
        let (Some(rows @ 1..), Some(metadata)) = (rows, metadata) else {
            return Err(damaged());
        };
        Ok(Tables {
            store: store.clone(),
            rows,
            metadata: metadata
                .iter()
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
        })
    }

    /// Adds the references of the array at a path, if there is one.
    pub(super) async fn load(&self, path: &str, references: &mut References) -> Result<bool> {
        let key = join(path, ".zarray");
        let Some((_, zarray)) = self.metadata.iter().find(|(other, _)| *other == key) else {
            return Ok(false);
        };
        let zarray = zarray
            .as_object()
            .ok_or_else(|| Error::data(format!("the metadata of {path:?} is no object")))?;
        let meta = ArrayMeta::from_v2(zarray, Map::new())?;
        let chunks = meta.grid()?.num_chunks();
        let tables = chunks.div_ceil(self.rows);
        let fetched = (0..tables).map(|number| async move {
            let key = join(path, &format!("refs.{number}.parq"));
            match self.store.get(&key, Get::default()).await {
                Ok(got) => Ok(Some((number, key, got.body.into_bytes()?))),
                // A table without rows need not be there.
                Err(e) if e.is_not_found() => Ok(None),
                Err(e) => Err(e),
            }
        });
        let mut fetched = stream::iter(fetched).buffer_unordered(CONCURRENT);
        while let Some(table) = fetched.try_next().await? {
            if let Some((number, key, bytes)) = table {
                self.add(&meta, path, number, bytes, references)
                    .map_err(|e| e.context(&key))?;
            }
        }
        Ok(true)
    }

    fn add(
        &self,
        meta: &ArrayMeta,
        path: &str,
        table: u64,
        bytes: Bytes,
        references: &mut References,
    ) -> Result<()> {
        let damaged = |e: parquet::errors::ParquetError| {
            Error::data(format!("the table of references is damaged: {e}"))
        };
        let reader = SerializedFileReader::new(bytes).map_err(damaged)?;
        let grid = meta.grid()?;
        let counts = grid.grid_shape();
        let total = grid.num_chunks();
        for (number, row) in (table * self.rows..).zip(reader.get_row_iter(None).map_err(damaged)?)
        {
            let row = row.map_err(damaged)?;
            let Some(reference) = reference(&row, references)? else {
                continue;
            };
            if number >= total {
                return Err(Error::data(
                    "the table has more rows than its array has chunks",
                ));
            }
            let mut left = number;
            let mut chunk = vec![0; counts.len()];
            for (at, count) in chunk.iter_mut().zip(&counts).rev() {
                *at = left % count;
                left /= count;
            }
            references.insert(join(path, &meta.keys.key(&chunk)), reference);
        }
        Ok(())
    }
}

/// What a row leads to; `None` for a chunk that is not there.
fn reference(row: &Row, references: &mut References) -> Result<Option<Reference>> {
    let (mut path, mut offset, mut size, mut raw) = (None, 0, 0, None);
    for (name, field) in row.get_column_iter() {
        match (name.as_str(), field) {
            ("path", Field::Str(text)) => path = Some(text.clone()),
            ("path", Field::Bytes(bytes)) => {
                path = Some(String::from_utf8_lossy(bytes.data()).into_owned());
            }
            ("offset", field) => offset = number(field)?,
            ("size", field) => size = number(field)?,
            ("raw", Field::Bytes(bytes)) => raw = Some(Bytes::copy_from_slice(bytes.data())),
            ("raw", Field::Str(text)) => raw = Some(Bytes::from(text.clone().into_bytes())),
            _ => {}
        }
    }
    if let Some(raw) = raw {
        return Ok(Some(Reference::Inline(raw)));
    }
    let Some(path) = path.filter(|path| !path.is_empty()) else {
        return Ok(None);
    };
    let object = references.number(&path);
    Ok(Some(match (offset, size) {
        // fsspec says a whole object so.
        (0, 0) => Reference::Object(object),
        _ => Reference::Range(
            object,
            offset
                ..offset
                    .checked_add(size)
                    .ok_or_else(|| Error::data("a reference ends beyond 2^64"))?,
        ),
    }))
}

fn number(field: &Field) -> Result<u64> {
    let value = match field {
        Field::Null => Some(0),
        Field::Long(n) => u64::try_from(*n).ok(),
        Field::Int(n) => u64::try_from(*n).ok(),
        Field::ULong(n) => Some(*n),
        Field::UInt(n) => Some(u64::from(*n)),
        _ => None,
    };
    value.ok_or_else(|| Error::data("a place in a table of references is no number"))
}
