//! The state of a source as a whole, so that a change while it is read is noticed.
//!
//! Single objects are pinned by their ETags while they are read; a pin says that no other object
//! changed between two reads either. Attributes are no part of it. Of a file the pin is its ETag; of
//! what cannot be listed (web servers, reference files, virtual datasets) only the metadata.

use std::fmt::Write;

use hyperslab_format as format;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{Array, Error, Result};

/// A text that is the same as long as the array's cells and layout are.
pub(super) async fn pin(array: &Array) -> Result<String> {
    let state = array.ready().await?;
    let inner = array.inner();
    let mut hash = Sha256::new();
    if let Some(file) = &state.file {
        hash.update(file.size().to_le_bytes());
        hash.update(file.etag().unwrap_or_default());
        hash.update(cell_meta(state.meta.to_json()).to_string());
        return Ok(hex(&hash.finalize()));
    }
    if inner.open.references.is_some() || state.mosaic.is_some() {
        hash.update(cell_meta(state.meta.to_json()).to_string());
        return Ok(hex(&hash.finalize()));
    }
    let own = format::load(&*inner.open.store, &inner.location.path).await?;
    let own = own.node.into_array(array.url())?;
    pin_of(array, own.to_json()).await
}

/// The same for a Zarr array with given metadata.
pub(super) async fn pin_of(array: &Array, meta: Value) -> Result<String> {
    let mut hash = Sha256::new();
    hash.update(cell_meta(meta).to_string());
    if !array.inner().open.read_only {
        let mut objects = array.chunk_entries().await?;
        objects.sort_by(|a, b| a.0.cmp(&b.0));
        for (_, entry) in &objects {
            let meta = &entry.meta;
            hash.update(&entry.key);
            hash.update(meta.size.to_le_bytes());
            match &meta.etag {
                Some(etag) => hash.update(etag),
                None => hash.update(meta.modified_ms.unwrap_or(0).to_le_bytes()),
            }
        }
    }
    Ok(hex(&hash.finalize()))
}

/// Fails if the array is not in the state of `pinned` any more.
pub(super) async fn check(array: &Array, pinned: &str) -> Result<()> {
    if pin(array).await? == pinned {
        return Ok(());
    }
    Err(
        Error::conflict(format!("{} changed while it was rechunked", array.url()))
            .with_hint("stop its writers, and begin again with --overwrite"),
    )
}

/// What metadata says of cells.
fn cell_meta(mut json: Value) -> Value {
    if let Value::Object(map) = &mut json {
        map.remove("attributes");
    }
    json
}

/// A short name that follows from texts.
pub(super) fn name_of(texts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    }
    hex(&hash.finalize()[..8])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
