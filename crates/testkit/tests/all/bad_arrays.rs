//! Broken bytes: every read that touches them is a `Data` error that names the array and the
//! object, and every other read is right.

use hyperslab::{
    Array, ArraySpec, Compression, DataType, Error, ErrorKind, Mode, Options, Selection, Session,
    Shape,
};
use hyperslab_store::{Put, StoreRef};
use hyperslab_testkit::servers::Place;
use hyperslab_testkit::{Model, Outcome, Wanted, ensure, fails, run, same};
use serde_json::{Value, json};

/// An array of 4×6 chunks of 5×5 cells, whose cells are all different, and its store.
struct Victim {
    place: Place,
    store: StoreRef,
    session: Session,
    url: String,
    model: Model,
}

impl Victim {
    async fn new(name: &str, shards: Vec<u64>, compression: Compression) -> Outcome<Self> {
        let place = Place::memory(&format!("victim-{name}"));
        let store = place.store("x.zarr")?;
        let session = Session::default();
        let url = place.mount(&session, "x.zarr")?;
        let mut spec = ArraySpec::new(Shape::new([20, 30])?, DataType::UInt(2));
        spec.chunks = Some(vec![5, 5]);
        spec.shards = Some(shards);
        spec.compression = compression;
        let array = session
            .create_array(&format!("{url}/array"), spec, true)
            .await?;
        let mut model = Model::new(&[20, 30], &[0, 0]);
        let cells: Vec<u8> = (0..600u16).flat_map(u16::to_le_bytes).collect();
        model.write(&Wanted::All, &cells);
        array.write(&Selection::All, cells).await?;
        Ok(Victim {
            place,
            store,
            session,
            url,
            model,
        })
    }

    async fn open(&self) -> hyperslab::Result<Array> {
        self.session
            .open_array(&format!("{}/array", self.url))
            .await
    }

    async fn change(&self, key: &str, change: impl FnOnce(Vec<u8>) -> Vec<u8>) -> Outcome {
        let bytes = self
            .store
            .get(key, Default::default())
            .await?
            .body
            .into_bytes()?;
        let bytes = change(bytes.to_vec());
        self.store
            .put(key, vec![bytes.into()], Put::Overwrite)
            .await?;
        Ok(())
    }

    /// Changes the array's metadata as JSON.
    async fn edit(&self, change: impl FnOnce(&mut Value)) -> Outcome {
        let mut json: Value = serde_json::from_slice(
            &self
                .store
                .get("array/zarr.json", Default::default())
                .await?
                .body
                .into_bytes()?,
        )?;
        change(&mut json);
        self.change("array/zarr.json", |_| json.to_string().into_bytes())
            .await
    }

    /// The upper left corner is broken, so is all; the lower right corner is not.
    async fn check(&self, what: &str, object: &str) -> Outcome {
        for planner in [Mode::Global, Mode::Get] {
            let session = Session::new(Options {
                planner,
                ..Options::default()
            });
            self.place.mount(&session, "x.zarr")?;
            let array = session.open_array(&format!("{}/array", self.url)).await?;
            let corner = Wanted::region(&[0, 0], &[5, 5]).selection(2)?;
            for selection in [&corner, &Selection::All] {
                let error = fails(what, array.read(selection).await, ErrorKind::Data)?;
                for word in ["array", object] {
                    ensure(error.message().contains(word), || {
                        format!("{what}: no {word:?} in {error}")
                    })?;
                }
            }
            let far = Wanted::region(&[15, 20], &[5, 10]);
            same(
                what,
                array.read(&far.selection(2)?).await?,
                self.model.read(&far),
            )?;
            // A part of a broken chunk cannot be written without losing the rest of it.
            let part = Wanted::region(&[0, 0], &[1, 1]).selection(2)?;
            fails(what, array.write(&part, vec![1, 1]).await, ErrorKind::Data)?;
        }
        Ok(())
    }
}

/// What happens to the bytes of an object.
type Damage = fn(Vec<u8>) -> Vec<u8>;
/// A name, the codecs, and what is done to a chunk that has them.
type Case<'a> = (&'a str, Compression, &'a [(&'a str, Damage)]);

fn cut(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(bytes.len() / 2);
    bytes
}

fn extend(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.extend_from_slice(&[0; 7]);
    bytes
}

fn empty(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.clear();
    bytes
}

fn flip(mut bytes: Vec<u8>) -> Vec<u8> {
    let at = bytes.len() / 2;
    bytes[at] ^= 0x10;
    bytes
}

fn garbage(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.fill(0xa5);
    bytes
}

#[test]
fn broken_chunks() {
    let codec = |name: &str, settings: Value| json!({"name": name, "configuration": settings});
    let cases: [Case<'_>; 5] = [
        (
            "raw",
            Compression::None,
            &[("cut", cut), ("longer", extend), ("empty", empty)],
        ),
        (
            "zstd",
            Compression::Codecs(vec![codec("zstd", json!({"level": 1, "checksum": true}))]),
            &[
                ("cut", cut),
                ("empty", empty),
                ("flipped", flip),
                ("garbage", garbage),
            ],
        ),
        (
            "gzip",
            Compression::Codecs(vec![codec("gzip", json!({"level": 1}))]),
            &[
                ("cut", cut),
                ("empty", empty),
                ("flipped", flip),
                ("garbage", garbage),
            ],
        ),
        (
            "blosc",
            Compression::Codecs(vec![codec(
                "blosc",
                json!({"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 2, "blocksize": 0}),
            )]),
            &[("cut", cut), ("empty", empty), ("garbage", garbage)],
        ),
        (
            "crc32c",
            Compression::Codecs(vec![json!({"name": "crc32c"})]),
            &[
                ("cut", cut),
                ("longer", extend),
                ("empty", empty),
                ("flipped", flip),
                ("garbage", garbage),
            ],
        ),
    ];
    run(async {
        for (codecs, compression, damages) in cases {
            for (damage, change) in damages {
                let victim = Victim::new("chunks", vec![], compression.clone()).await?;
                victim.change("array/c/0/0", change).await?;
                victim
                    .check(&format!("{codecs}, {damage}"), "c/0/0")
                    .await?;
            }
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_chunk_of_another_size() {
    run(async {
        // Compressed soundly, but half as many cells as the shape needs, or twice as many.
        for side in [4, 10] {
            let victim = Victim::new("size", vec![], Compression::Default).await?;
            let mut spec = ArraySpec::new(Shape::new([side, 5])?, DataType::UInt(2));
            spec.chunks = Some(vec![side, 5]);
            let url = format!("{}/other", victim.url);
            let other = victim.session.create_array(&url, spec, true).await?;
            other
                .write(&Selection::All, vec![7; 10 * side as usize])
                .await?;
            let bytes = victim
                .store
                .get("other/c/0/0", Default::default())
                .await?
                .body
                .into_bytes()?;
            victim.change("array/c/0/0", |_| bytes.to_vec()).await?;
            victim
                .check(&format!("{side} rows instead of 5"), "c/0/0")
                .await?;
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn broken_shards() {
    fn index_flipped(mut bytes: Vec<u8>) -> Vec<u8> {
        let at = bytes.len() - 10;
        bytes[at] ^= 1;
        bytes
    }
    /// An index whose checksum is right but whose first entry points behind the end.
    fn beyond_the_end(mut bytes: Vec<u8>) -> Vec<u8> {
        let start = bytes.len() - (4 * 16 + 4);
        bytes[start..start + 8].copy_from_slice(&(1u64 << 40).to_le_bytes());
        seal(&mut bytes, start);
        bytes
    }
    /// The same with an offset and a length whose sum overflows.
    fn overflowing(mut bytes: Vec<u8>) -> Vec<u8> {
        let start = bytes.len() - (4 * 16 + 4);
        bytes[start..start + 8].copy_from_slice(&(u64::MAX - 8).to_le_bytes());
        bytes[start + 8..start + 16].copy_from_slice(&50u64.to_le_bytes());
        seal(&mut bytes, start);
        bytes
    }
    /// The first inner chunk claims fewer bytes than it has.
    fn too_short(mut bytes: Vec<u8>) -> Vec<u8> {
        let start = bytes.len() - (4 * 16 + 4);
        bytes[start + 8..start + 16].copy_from_slice(&20u64.to_le_bytes());
        seal(&mut bytes, start);
        bytes
    }
    fn cut_into_index(mut bytes: Vec<u8>) -> Vec<u8> {
        bytes.truncate(40);
        bytes
    }
    let cases: [(&str, Damage); 6] = [
        ("index flipped", index_flipped),
        ("beyond the end", beyond_the_end),
        ("overflowing", overflowing),
        ("too short", too_short),
        ("cut", cut_into_index),
        ("empty", empty),
    ];
    run(async {
        for (damage, change) in cases {
            let victim = Victim::new("shards", vec![10, 10], Compression::None).await?;
            victim.change("array/c/0/0", change).await?;
            victim.check(damage, "c/0/0").await?;
        }
        Ok(())
    })
    .unwrap();
}

/// Writes the CRC-32C of an index that starts at `start` behind it.
fn seal(bytes: &mut [u8], start: usize) {
    let end = bytes.len() - 4;
    let mut crc = !0u32;
    for byte in &bytes[start..end] {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg());
        }
    }
    bytes[end..].copy_from_slice(&(!crc).to_le_bytes());
}

#[test]
fn the_checksum_of_these_tests_is_the_right_one() {
    let mut bytes = b"123456789\0\0\0\0".to_vec();
    seal(&mut bytes, 0);
    assert_eq!(bytes[9..], 0xe306_9283u32.to_le_bytes());
}

/// Opening fails with a `Data` error that has this word.
async fn refused(victim: &Victim, what: &str, word: &str) -> Outcome<Error> {
    let error = fails(what, victim.open().await, ErrorKind::Data)?;
    ensure(error.to_string().contains(word), || {
        format!("{what}: no {word:?} in {error}")
    })?;
    ensure(error.message().contains("zarr.json"), || {
        format!("{what}: the object is not named: {error}")
    })?;
    Ok(error)
}

#[test]
fn broken_metadata() {
    let damages: [(&str, Damage); 4] = [
        ("cut", cut),
        ("empty", empty),
        ("garbage", garbage),
        ("a list", |_| b"[1, 2]".to_vec()),
    ];
    run(async {
        for (what, damage) in damages {
            let victim = Victim::new("json", vec![], Compression::Default).await?;
            victim.change("array/zarr.json", damage).await?;
            refused(&victim, what, "JSON").await?;
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn metadata_that_cannot_be_understood() {
    type Edit = fn(&mut Value);
    let edits: [(&str, &str, Edit); 16] = [
        ("an unknown codec", "lzma2", |m| {
            m["codecs"] = json!([{"name": "bytes"}, {"name": "lzma2"}])
        }),
        ("no codec for bytes", "bytes", |m| {
            m["codecs"] = json!([{"name": "crc32c"}])
        }),
        ("an unknown data type", "decimal7", |m| {
            m["data_type"] = json!("decimal7")
        }),
        ("a data type without a name", "name", |m| {
            m["data_type"] = json!({"x": 1})
        }),
        ("an unknown grid", "hexagonal", |m| {
            m["chunk_grid"]["name"] = json!("hexagonal")
        }),
        ("unknown keys", "morton", |m| {
            m["chunk_key_encoding"]["name"] = json!("morton")
        }),
        ("must_understand", "extension", |m| {
            m["extension"] = json!({"must_understand": true})
        }),
        ("an unknown field", "colour", |m| m["colour"] = json!("red")),
        ("a negative shape", "shape", |m| m["shape"] = json!([-1, 5])),
        ("a shape of another rank", "", |m| {
            m["shape"] = json!([20, 30, 4])
        }),
        ("a chunk side of zero", "", |m| {
            m["chunk_grid"]["configuration"]["chunk_shape"] = json!([0, 5])
        }),
        ("a huge chunk", "", |m| {
            m["chunk_grid"]["configuration"]["chunk_shape"] = json!([1u64 << 40, 1u64 << 20]);
        }),
        ("a wrong fill value", "fill", |m| {
            m["fill_value"] = json!("red")
        }),
        ("a transformer", "transformer", |m| {
            m["storage_transformers"] = json!([{"name": "x"}])
        }),
        ("another format", "4", |m| m["zarr_format"] = json!(4)),
        ("no shape", "shape", |m| {
            drop(m.as_object_mut().unwrap().remove("shape"))
        }),
    ];
    run(async {
        for (what, word, edit) in edits {
            let victim = Victim::new("meta", vec![], Compression::Default).await?;
            victim.edit(edit).await?;
            let named = |failure: hyperslab_testkit::Failure| failure.within(what);
            let error = match victim.open().await {
                // Sizes that no memory could hold are wrong however one calls them.
                Err(e) if matches!(e.kind(), ErrorKind::Data | ErrorKind::Invalid) => e,
                Err(e) => return Err(named(e.into())),
                Ok(array) => {
                    return Err(hyperslab_testkit::Failure::new(format!(
                        "{what} opens: {array:?}"
                    )));
                }
            };
            ensure(error.to_string().contains(word), || {
                format!("{what}: no {word:?} in {error}")
            })?;
            ensure(error.message().contains("array/zarr.json"), || {
                format!("{what}: not named: {error}")
            })?;
        }
        // What says that it may be ignored is ignored, and kept.
        let victim = Victim::new("meta", vec![], Compression::Default).await?;
        victim
            .edit(|m| m["note"] = json!({"must_understand": false, "x": 1}))
            .await?;
        let array = victim.open().await?;
        array.resize(&[20, 31]).await?;
        let bytes = victim
            .store
            .get("array/zarr.json", Default::default())
            .await?
            .body
            .into_bytes()?;
        let json: Value = serde_json::from_slice(&bytes)?;
        same("the note", json["note"]["x"].clone(), json!(1))
    })
    .unwrap();
}

#[test]
fn stale_consolidated_metadata_is_noticed() {
    run(async {
        let victim = Victim::new("stale", vec![], Compression::Default).await?;
        let root = victim.session.open_group(&victim.url).await?;
        // A tool that knows nothing of the copy makes the array smaller.
        victim.edit(|m| m["shape"] = json!([10, 30])).await?;
        let hyperslab::Node::Array(array) = root.node("array").await? else {
            return Err(hyperslab_testkit::Failure::new("the array is a group"));
        };
        let error = fails(
            "a read",
            array.read(&Selection::All).await,
            ErrorKind::Conflict,
        )?;
        ensure(error.hint().is_some(), || format!("no hint: {error}"))?;
        fails(
            "a write",
            array.write(&Selection::All, vec![0; 1200]).await,
            ErrorKind::Conflict,
        )?;
        same("disagreements", root.disagreements().await?.len(), 1)?;
        let own = victim.open().await?;
        same("the array's own shape", own.shape().to_vec(), vec![10, 30])?;
        same(
            "its cells",
            own.read(&Selection::All).await?,
            victim.model.resized(&[10, 30]).cells().to_vec(),
        )?;
        victim
            .session
            .open_group(&victim.url)
            .await?
            .consolidate()
            .await?;
        let root = victim.session.open_group(&victim.url).await?;
        same(
            "disagreements after consolidation",
            root.disagreements().await?,
            Vec::new(),
        )
    })
    .unwrap();
}

#[test]
fn a_chunk_that_is_a_directory_is_not_fill() {
    run(async {
        let dir = tempfile::tempdir()?;
        let root = dir.path().join("x.zarr");
        let session = Session::default();
        let mut spec = ArraySpec::new(Shape::new([4])?, DataType::UInt(1));
        spec.chunks = Some(vec![2]);
        let url = format!("{}/array", root.display());
        let array = session.create_array(&url, spec, false).await?;
        array.write(&Selection::All, vec![1; 4]).await?;
        let chunk = root.join("array/c/0");
        std::fs::remove_file(&chunk)?;
        std::fs::create_dir(&chunk)?;
        let cells = array.read(&Selection::All).await;
        // A directory is no object, so the key is absent; what matters is that nothing panics and
        // that writing there says what is in the way.
        ensure(
            cells.is_err() || cells.is_ok_and(|cells| cells == [0, 0, 1, 1]),
            || "wrong cells".into(),
        )?;
        let written = array.write(&Selection::All, vec![2; 4]).await;
        ensure(written.is_err(), || "a directory was overwritten".into())
    })
    .unwrap();
}
