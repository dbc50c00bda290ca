//! Metadata of many nodes at a time, for one writer who knows all of a hierarchy.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use hyperslab_format::{self as format, join, render_json};
use hyperslab_store::Put;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::array::{Array, State};
use crate::{ArrayMeta, Error, Result, Session};

/// Requests at a time.
const CONCURRENT: usize = 32;

impl Session {
    /// An array whose metadata the caller knows; nothing is asked for.
    pub async fn adopt(&self, url: &str, meta: ArrayMeta) -> Result<Array> {
        let location = self.locate(url)?;
        format::check_path(&location.path)?;
        let open = self.store(&location.root).await?;
        let state = State::new(meta, &location.path)?;
        Ok(Array::with_state(self, open, &location, state, false))
    }

    /// Writes the metadata of the nodes that are named in `changed`, and a root that holds a copy of
    /// all. Returns what tells this state of the root from any other.
    pub async fn publish(
        &self,
        url: &str,
        nodes: &BTreeMap<String, Value>,
        changed: &BTreeSet<String>,
    ) -> Result<String> {
        let open = self.store(&self.locate(url)?.root).await?;
        let root = nodes.get("").cloned();
        let mut root = root.ok_or_else(|| Error::internal("a hierarchy has no root"))?;
        let put = |path: String, value: Vec<u8>| {
            let store = open.store.clone();
            async move {
                let key = join(&path, "zarr.json");
                let value = vec![Bytes::from(value)];
                store.put(&key, value, Put::Overwrite).await.map(drop)
            }
        };
        let below = changed.iter().filter(|path| !path.is_empty());
        let below = below.filter_map(|path| Some((path.clone(), render_json(nodes.get(path)?))));
        let writes = below.map(|(path, json)| put(path, json));
        stream::iter(writes)
            .buffer_unordered(CONCURRENT)
            .try_collect::<()>()
            .await?;
        let copies: serde_json::Map<_, _> = nodes
            .iter()
            .filter(|(path, _)| !path.is_empty())
            .map(|(path, json)| (path.clone(), json.clone()))
            .collect();
        if let Some(fields) = root.as_object_mut() {
            let copy = json!({"kind": "inline", "must_understand": false, "metadata": copies});
            fields.insert("consolidated_metadata".into(), copy);
        }
        let text = render_json(&root);
        let told = digest(&text);
        put(String::new(), text).await?;
        Ok(told)
    }

    /// The metadata of all nodes that the root of a hierarchy holds copies of, its own included, and
    /// what tells this state of it from any other; `None` if there is no root.
    pub async fn published(&self, url: &str) -> Result<Option<(BTreeMap<String, Value>, String)>> {
        let open = self.store(&self.locate(url)?.root).await?;
        let text = match open.store.get("zarr.json", Default::default()).await {
            Ok(got) => got.body.into_bytes()?,
            Err(e) if e.is_not_found() => return Ok(None),
            Err(e) => return Err(e),
        };
        let mut root: Value = serde_json::from_slice(&text)
            .map_err(|e| Error::data(format!("{url}/zarr.json is no JSON: {e}")))?;
        let fields = root.as_object_mut();
        let copies = fields.and_then(|fields| fields.remove("consolidated_metadata"));
        let mut nodes = BTreeMap::from([(String::new(), root)]);
        if let Some(Value::Object(copies)) =
            copies.and_then(|mut all| all.get_mut("metadata").map(Value::take))
        {
            nodes.extend(copies);
        }
        Ok(Some((nodes, digest(&text))))
    }

    /// Removes all objects below a path of a hierarchy, whatever they are.
    pub async fn sweep(&self, url: &str) -> Result<()> {
        let location = self.locate(url)?;
        let open = self.store(&location.root).await?;
        format::remove_node(&*open.store, &location.path, |_| {}).await?;
        // A file of that name, which is no folder.
        if location.path.is_empty()
            && let Some((folder, name)) = location.folder()
        {
            let open = self.store(&folder).await?;
            if !open.lazy {
                open.store.delete(&name).await?;
            }
        }
        Ok(())
    }
}

fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
