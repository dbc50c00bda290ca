//! The handler against a naive model: cut the same bytes out of the cells themselves.

use hyperslab_format::{CodecChain, DataType};
use hyperslab_function::{
    AllowList, Answer, Service, ServiceConfig, SlabRequest, StridedRun, Unit, UnitCodecs,
};
use hyperslab_store::{Put, StoreRef, open};
use proptest::prelude::*;
use serde_json::{Value, json};

fn chains() -> Vec<Value> {
    let big = json!({"name": "bytes", "configuration": {"endian": "big"}});
    let little = json!({"name": "bytes", "configuration": {"endian": "little"}});
    let turned = json!({"name": "transpose", "configuration": {"order": [1, 0]}});
    let zstd = json!({"name": "zstd", "configuration": {"level": 1, "checksum": false}});
    let blosc = json!({"name": "blosc", "configuration":
        {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}});
    vec![
        json!([little]),
        json!([big]),
        json!([little, zstd]),
        json!([little, blosc]),
        json!([turned, little]),
        json!([turned, big, zstd, {"name": "crc32c"}]),
    ]
}

/// An array of int32 cells, its stored bytes, and the bytes that runs count in.
struct Chunk {
    codecs: UnitCodecs,
    encoded: Vec<u8>,
    cells: Vec<u8>,
}

fn chunk(chain: &Value, rows: u64, columns: u64, seed: i32) -> Chunk {
    let value = |row: u64, column: u64| (row * columns + column) as i32 * 7 + seed;
    let turned = chain[0]["name"] == "transpose";
    let mut cells = Vec::new();
    let (outer, inner) = if turned {
        (columns, rows)
    } else {
        (rows, columns)
    };
    for i in 0..outer {
        for j in 0..inner {
            let cell = if turned { value(j, i) } else { value(i, j) };
            cells.extend(cell.to_le_bytes());
        }
    }
    let list = chain.as_array().unwrap();
    let parsed = CodecChain::from_json(list, &DataType::Int(4), &[rows, columns]).unwrap();
    let encoded = parsed
        .encode(&mut cells.clone(), &[outer, inner], &[0; 4])
        .unwrap();
    Chunk {
        codecs: UnitCodecs {
            codecs: chain.clone(),
            data_type: "int32".into(),
            fill_value: 0.into(),
            shape: vec![rows, columns],
        },
        encoded,
        cells,
    }
}

fn naive(cells: &[u8], runs: &[StridedRun]) -> Vec<u8> {
    let mut out = Vec::new();
    for run in runs {
        for piece in 0..run.count {
            for byte in 0..run.len {
                out.push(cells[(run.start + piece * run.step + byte) as usize]);
            }
        }
    }
    out
}

/// Runs of whole bytes within `len`, from three numbers each.
fn runs(raw: &[(u64, u64, u64)], len: u64) -> Vec<StridedRun> {
    raw.iter()
        .map(|(a, b, c)| {
            let start = a % len;
            let piece = 1 + b % (len - start);
            let step = piece + c % 9;
            let count = 1 + (c / 9) % ((len - start - piece) / step + 1);
            StridedRun {
                start,
                len: piece,
                step,
                count,
            }
        })
        .collect()
}

async fn ask(service: &Service, request: &SlabRequest) -> Vec<u8> {
    let response = service.handle(&request.to_bytes().unwrap(), None, 0).await;
    let text = String::from_utf8_lossy(&response.body).into_owned();
    assert_eq!(response.status, 200, "{text}");
    assert_eq!(response.work.answered, request.payload_len().unwrap());
    let expected = request.payload_len().unwrap();
    Answer::parse(response.body, expected).unwrap().to_vec()
}

fn service(prefix: &str) -> Service {
    Service::new(ServiceConfig::unsigned(AllowList::parse(prefix).unwrap())).unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

async fn put(store: &StoreRef, key: &str, bytes: Vec<u8>) {
    store
        .put(key, vec![bytes.into()], Put::Overwrite)
        .await
        .unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn answers_equal_the_model(
        which in prop::collection::vec(0usize..6, 1..5),
        (rows, columns) in (1u64..20, 1u64..20),
        raw in prop::collection::vec(any::<(u64, u64, u64)>(), 1..6),
        gap in 0usize..40,
        local in any::<bool>(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let prefix = match local {
            true => format!("file://{}", dir.path().display()),
            false => "memory://oracle/data".to_owned(),
        };
        let chunks: Vec<Chunk> = which
            .iter()
            .enumerate()
            .map(|(i, which)| chunk(&chains()[*which], rows, columns, i as i32 * 1000))
            .collect();
        // All chunks in one object, with gaps, as a shard has them.
        let (mut object, mut expected, mut units) = (Vec::new(), Vec::new(), Vec::new());
        for chunk in &chunks {
            object.extend(vec![0xee; gap]);
            let start = object.len() as u64;
            object.extend(&chunk.encoded);
            let range = start..object.len() as u64;
            let cut = runs(&raw, chunk.cells.len() as u64);
            expected.extend(naive(&chunk.cells, &cut));
            units.push(Unit::decoded(chunk.codecs.clone(), cut).at(range.clone()));
            // The same bytes, not decoded.
            let cut = runs(&raw, chunk.encoded.len() as u64);
            expected.extend(naive(&chunk.encoded, &cut));
            units.push(Unit::raw(cut).at(range));
        }
        let whole = runs(&raw, object.len() as u64);
        expected.extend(naive(&object, &whole));
        units.push(Unit::raw(whole));
        let (got, alone) = runtime().block_on(async {
            let store = open(&prefix).unwrap();
            put(&store, "a/c0", object).await;
            put(&store, "a/alone", chunks[0].encoded.clone()).await;
            let service = service(&prefix);
            let request = SlabRequest::new(format!("{prefix}/a/c0"), units).unwrap();
            let got = ask(&service, &request).await;
            let cut = runs(&raw, chunks[0].cells.len() as u64);
            let unit = Unit::decoded(chunks[0].codecs.clone(), cut);
            let request = SlabRequest::new(format!("{prefix}/a/alone"), vec![unit]).unwrap();
            (got, ask(&service, &request).await)
        });
        prop_assert!(got == expected);
        prop_assert_eq!(alone, naive(&chunks[0].cells, &runs(&raw, chunks[0].cells.len() as u64)));
    }
}

#[tokio::test]
async fn the_state_of_the_object_is_pinned_and_told() {
    let store = open("memory://pinned").unwrap();
    let first = store
        .put("k", vec!["0123456789".into()], Put::Overwrite)
        .await
        .unwrap();
    let service = service("memory://pinned");
    let unit = || Unit::raw(vec![StridedRun::plain(2..4)]);
    let request = SlabRequest::new("memory://pinned/k", vec![unit(), unit()]).unwrap();
    let response = service.handle(&request.to_bytes().unwrap(), None, 0).await;
    let etag = first.etag.clone().unwrap();
    assert_eq!(response.headers, [("x-hyperslab-etag", etag)]);
    let pinned = request.clone().pinned(first.etag);
    assert_eq!(ask(&service, &pinned).await, b"2323");
    store
        .put("k", vec!["abcdefghij".into()], Put::Overwrite)
        .await
        .unwrap();
    let response = service.handle(&pinned.to_bytes().unwrap(), None, 0).await;
    assert_eq!(response.status, 409);
    assert_eq!(ask(&service, &request).await, b"cdcd");
}

#[tokio::test]
async fn what_is_wrong_with_the_object_has_its_own_status() {
    let store = open("memory://wrong").unwrap();
    put(&store, "short", vec![1; 10]).await;
    let service = service("memory://wrong");
    let raw = |range| Unit::raw(vec![StridedRun::plain(range)]);
    let good = chunk(&chains()[2], 4, 4, 0).codecs;
    let decoded = || Unit::decoded(good.clone(), vec![StridedRun::plain(0..4)]);
    put(&store, "long", vec![1; 100_000]).await;
    for (key, unit, status) in [
        ("absent", raw(0..1), 404),
        ("short", raw(0..11), 500),
        ("short", decoded(), 500),
        ("short", decoded().at(0..11), 500),
        ("long", decoded(), 500),
    ] {
        let request = SlabRequest::new(format!("memory://wrong/{key}"), vec![unit]).unwrap();
        let response = service.handle(&request.to_bytes().unwrap(), None, 0).await;
        let text = String::from_utf8_lossy(&response.body).into_owned();
        assert_eq!(response.status, status, "{key} {text}");
    }
}

#[tokio::test]
async fn many_large_units_share_little_memory() {
    let store = open("memory://tight").unwrap();
    put(&store, "k", vec![7; 8 << 20]).await;
    let mut config = ServiceConfig::unsigned(AllowList::parse("memory://tight").unwrap());
    config.limits.max_memory = 3 << 20;
    let service = Service::new(config).unwrap();
    let unit = |start: u64| {
        let run = StridedRun {
            start: 0,
            len: 4,
            step: 4096,
            count: 512,
        };
        Unit::raw(vec![run]).at(start << 20..(start + 2) << 20)
    };
    let request = SlabRequest::new("memory://tight/k", (0..6).map(unit).collect()).unwrap();
    let (one, other) = tokio::join!(ask(&service, &request), ask(&service, &request));
    assert_eq!(one, vec![7; 6 * 2048]);
    assert_eq!(one, other);
}
