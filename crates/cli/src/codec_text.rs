//! Codecs as people write them on the command line.
//!
//! `zstd:3`, `blosc:lz4:5:bitshuffle,crc32c`, or the JSON that Zarr has for them.

use hyperslab::{Compression, DataType, Error, Result};
use serde_json::{Value, json};

const HINT: &str = "examples: none, zstd, zstd:5, gzip:6, blosc:lz4:5:shuffle, zstd,crc32c, or a JSON list as in zarr.json";

/// Codecs that make a list a complete chain instead of what follows the packing of cells.
const CHAIN: [&str; 5] = [
    "bytes",
    "transpose",
    "sharding_indexed",
    "vlen-utf8",
    "vlen-bytes",
];

/// Parses what follows `--codec`.
pub(crate) fn parse(text: &str, dtype: &DataType) -> Result<Compression> {
    let text = text.trim();
    if text.starts_with('[') || text.starts_with('{') {
        return parse_json(text);
    }
    match text {
        "default" => return Ok(Compression::Default),
        "none" | "raw" => return Ok(Compression::None),
        _ => {}
    }
    text.split(',')
        .map(|one| parse_one(one.trim(), dtype))
        .collect::<Result<_>>()
        .map(Compression::Codecs)
}

fn parse_json(text: &str) -> Result<Compression> {
    let value: Value = serde_json::from_str(text).map_err(|e| {
        Error::invalid(format!("the codecs are not valid JSON: {e}")).with_hint(HINT)
    })?;
    let list = match value {
        Value::Array(list) => list,
        one => vec![one],
    };
    let complete = list.iter().any(|codec| {
        let name = codec
            .as_str()
            .or_else(|| codec.get("name").and_then(Value::as_str));
        name.is_some_and(|name| CHAIN.contains(&name))
    });
    Ok(if complete {
        Compression::Chain(list)
    } else {
        Compression::Codecs(list)
    })
}

fn parse_one(text: &str, dtype: &DataType) -> Result<Value> {
    let mut parts = text.split(':');
    let name = parts.next().unwrap_or_default();
    let parts: Vec<&str> = parts.collect();
    let too_many = |most: usize| match parts.len() > most {
        true => {
            Err(Error::invalid(format!("the codec {text:?} has too many settings")).with_hint(HINT))
        }
        false => Ok(()),
    };
    let level = |at: usize, default: i64, low: i64, high: i64| match parts.get(at) {
        None => Ok(default),
        Some(level) => match level.parse::<i64>() {
            Ok(level) if (low..=high).contains(&level) => Ok(level),
            _ => Err(
                Error::invalid(format!("{level:?} is not a level of {name}"))
                    .with_hint(format!("{name} has levels from {low} to {high}")),
            ),
        },
    };
    let codec = |settings: Value| json!({"name": name, "configuration": settings});
    Ok(match name {
        "zstd" => {
            too_many(1)?;
            codec(json!({"level": level(0, 0, -131_072, 22)?, "checksum": false}))
        }
        "gzip" => {
            too_many(1)?;
            codec(json!({"level": level(0, 5, 0, 9)?}))
        }
        "zlib" => {
            too_many(1)?;
            json!({"name": "numcodecs.zlib", "configuration": {"level": level(0, 5, 0, 9)?}})
        }
        "lz4" => {
            too_many(0)?;
            json!({"name": "numcodecs.lz4", "configuration": {"acceleration": 1}})
        }
        "shuffle" => {
            too_many(0)?;
            let size = dtype.cell_bytes().unwrap_or(1);
            json!({"name": "numcodecs.shuffle", "configuration": {"elementsize": size}})
        }
        "crc32c" => {
            too_many(0)?;
            json!({"name": "crc32c"})
        }
        "fletcher32" => {
            too_many(0)?;
            json!({"name": "numcodecs.fletcher32", "configuration": {}})
        }
        "blosc" => {
            too_many(3)?;
            codec(blosc(&parts, level(1, 5, 0, 9)?, dtype)?)
        }
        "none" | "default" => {
            return Err(
                Error::invalid(format!("{name:?} stands alone, not in a list of codecs"))
                    .with_hint(HINT),
            );
        }
        _ => return Err(Error::invalid(format!("the codec {name:?} is not known")).with_hint(HINT)),
    })
}

fn blosc(parts: &[&str], level: i64, dtype: &DataType) -> Result<Value> {
    let cname = parts.first().copied().unwrap_or("lz4");
    const INNER: [&str; 6] = ["lz4", "lz4hc", "blosclz", "zstd", "zlib", "snappy"];
    if !INNER.contains(&cname) {
        return Err(Error::invalid(format!("blosc has no compressor {cname:?}"))
            .with_hint(format!("it has {}", INNER.join(", "))));
    }
    let typesize = dtype.cell_bytes().filter(|n| *n < 256).unwrap_or(1);
    let shuffle = match parts.get(2).copied() {
        None if typesize > 1 => "shuffle",
        None => "bitshuffle",
        Some("shuffle" | "byte") => "shuffle",
        Some("bitshuffle" | "bit") => "bitshuffle",
        Some("noshuffle" | "none") => "noshuffle",
        Some(other) => {
            return Err(Error::invalid(format!("blosc has no shuffle {other:?}"))
                .with_hint("it has shuffle, bitshuffle and noshuffle"));
        }
    };
    Ok(json!({
        "typesize": typesize,
        "cname": cname,
        "clevel": level,
        "shuffle": shuffle,
        "blocksize": 0,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const F4: DataType = DataType::Float(4);

    #[test]
    fn chains_are_built() {
        assert_eq!(parse("none", &F4).unwrap(), Compression::None);
        assert_eq!(parse("default", &F4).unwrap(), Compression::Default);
        let Compression::Codecs(list) = parse("blosc:zstd:3:bit, crc32c", &F4).unwrap() else {
            panic!()
        };
        assert_eq!(list[0]["configuration"]["shuffle"], "bitshuffle");
        assert_eq!(list[0]["configuration"]["typesize"], 4);
        assert_eq!(list[0]["configuration"]["clevel"], 3);
        assert_eq!(list[1], json!({"name": "crc32c"}));
        let json = parse(r#"[{"name": "bytes"}, "crc32c"]"#, &F4).unwrap();
        assert!(matches!(json, Compression::Chain(list) if list.len() == 2));
        let json = parse(r#"{"name": "zstd", "configuration": {"level": 1}}"#, &F4).unwrap();
        assert!(matches!(json, Compression::Codecs(list) if list.len() == 1));
    }

    #[test]
    fn mistakes_are_named() {
        for bad in [
            "",
            "zst",
            "zstd:99",
            "gzip:x",
            "crc32c:1",
            "blosc:moo",
            "blosc:lz4:5:x",
            "zstd,none",
            "[",
            "blosc:lz4:1:bit:2",
        ] {
            let error = parse(bad, &F4).unwrap_err();
            assert!(error.hint().is_some(), "{bad}");
        }
    }
}
