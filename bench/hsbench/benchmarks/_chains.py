"""The codec chains of the interoperability matrix, as Zarr v3 spells them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ._types import Type

SHAPE = (7, 9, 5)
WRITTEN = (5, 9, 5)
CHUNK = (3, 4, 5)
SHARD = (6, 8, 5)

Json = dict[str, Any]


def codec(name: str, **configuration: Any) -> Json:
    return {"name": name, "configuration": configuration} if configuration else {"name": name}


def packing(kind: Type, endian: str = "little") -> Json:
    """The codec that turns cells into bytes."""
    if kind.data_type == "string":
        return codec("vlen-utf8")
    if kind.variable:
        return codec("vlen-bytes")
    return codec("bytes", endian=endian) if kind.ordered else codec("bytes")


def blosc(kind: Type, name: str, shuffle: str) -> Json:
    return codec(
        "blosc", cname=name, clevel=5, shuffle=shuffle, typesize=kind.size, blocksize=0
    )


def chains(kind: Type) -> dict[str, list[Json]]:
    """Every chain that makes sense for a type."""
    pack = packing(kind)
    transpose = codec("transpose", order=[2, 0, 1])
    zstd = codec("zstd", level=3, checksum=False)
    out = {
        "bytes": [pack],
        "transpose": [transpose, pack],
        "gzip": [pack, codec("gzip", level=5)],
        "zstd": [pack, zstd],
        "zstd+checksum": [pack, codec("zstd", level=1, checksum=True)],
        "blosc lz4 shuffle": [pack, blosc(kind, "lz4", "shuffle")],
        "blosc zstd bitshuffle": [pack, blosc(kind, "zstd", "bitshuffle")],
        "crc32c": [pack, codec("crc32c")],
        "zstd+crc32c": [pack, zstd, codec("crc32c")],
        "shuffle+zlib": [
            pack,
            codec("numcodecs.shuffle", elementsize=kind.size),
            codec("numcodecs.zlib", level=4),
        ],
    }
    if kind.ordered:
        out["bytes big"] = [packing(kind, "big")]
        out["transpose big zstd"] = [transpose, packing(kind, "big"), zstd]
    return out


def sharding(inner: list[Json], shape: tuple[int, ...], location: str = "end") -> Json:
    return codec(
        "sharding_indexed",
        chunk_shape=list(shape),
        codecs=inner,
        index_codecs=[codec("bytes", endian="little"), codec("crc32c")],
        index_location=location,
    )


@dataclass(frozen=True)
class Case:
    """One array of the matrix."""

    kind: Type
    chain: str
    layout: str
    chunk_shape: tuple[int, ...]
    codecs: tuple[Json, ...]

    @property
    def name(self) -> str:
        return f"{self.kind.label}, {self.chain}, {self.layout}"

    def spec(self) -> Json:
        return {
            "shape": list(SHAPE),
            "chunk_shape": list(self.chunk_shape),
            "data_type": self.kind.data_type,
            "fill_value": self.kind.fill_json,
            "codecs": list(self.codecs),
        }


def cases(kind: Type) -> Iterator[Case]:
    """All arrays of one type: every chain plain and sharded, and three shapes of shards."""
    known = chains(kind)
    for name, chain in known.items():
        yield Case(kind, name, "plain", CHUNK, tuple(chain))
        yield Case(kind, name, "sharded", SHARD, (sharding(chain, CHUNK),))
    start = sharding(known["zstd"], CHUNK, "start")
    yield Case(kind, "zstd", "sharded, index first", SHARD, (start,))
    turned = sharding(known["zstd"], tuple(CHUNK[d] for d in (2, 0, 1)))
    outside = codec("transpose", order=[2, 0, 1])
    yield Case(kind, "transpose", "sharded, transposed outside", SHARD, (outside, turned))
    nested = sharding([sharding(known["zstd"], (3, 2, 5))], CHUNK)
    yield Case(kind, "zstd", "shards in shards", SHARD, (nested,))
