"""Every layout, chunk index and filter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import h5py
import hdf5plugin
import numpy as np

from . import Case
from .types import LIBVERS, random

SHAPE = (41, 30)
# Name: (maximal shape, chunks, properties).
INDEXES = {
    "contiguous": (None, None),
    "single-chunk": (None, (41, 30)),
    "implicit": (None, (6, 7)),
    "fixed-array": (None, (6, 7)),
    "extensible-array": ((None, 30), (6, 7)),
    "b-tree": ((None, None), (6, 7)),
    "larger-limits": ((90, 60), (6, 7)),
    "one-cell-chunks": ((None, 30), (1, 1)),
}
FILTERS = {
    "none": {},
    "deflate": dict(compression="gzip", compression_opts=4),
    "shuffle": dict(shuffle=True),
    "shuffle-deflate": dict(shuffle=True, compression="gzip"),
    "fletcher32": dict(fletcher32=True),
    "lzf": dict(compression="lzf"),
    "shuffle-lzf": dict(shuffle=True, compression="lzf"),
    "all": dict(shuffle=True, compression="gzip", fletcher32=True),
    "scale-offset": dict(scaleoffset=0),
    "blosc-lz4": dict(hdf5plugin.Blosc(cname="lz4", shuffle=hdf5plugin.Blosc.SHUFFLE)),
    "blosc-zstd-bit": dict(hdf5plugin.Blosc(cname="zstd", shuffle=hdf5plugin.Blosc.BITSHUFFLE)),
    "blosc-zlib": dict(hdf5plugin.Blosc(cname="zlib", shuffle=hdf5plugin.Blosc.NOSHUFFLE)),
    "blosc-lz4hc": dict(hdf5plugin.Blosc(cname="lz4hc")),
    "blosc-blosclz": dict(hdf5plugin.Blosc(cname="blosclz")),
    "blosc2-zstd": dict(hdf5plugin.Blosc2(cname="zstd", filters=hdf5plugin.Blosc2.SHUFFLE)),
    "blosc2-lz4": dict(hdf5plugin.Blosc2(cname="lz4", filters=hdf5plugin.Blosc2.BITSHUFFLE)),
    "blosc2-blosclz": dict(hdf5plugin.Blosc2(cname="blosclz", filters=hdf5plugin.Blosc2.DELTA)),
    "zstd": dict(hdf5plugin.Zstd(clevel=5)),
    "lz4": dict(hdf5plugin.LZ4(nbytes=256)),
    "lz4-default": dict(hdf5plugin.LZ4()),
    "bitshuffle": dict(hdf5plugin.Bitshuffle(cname="none")),
    "bitshuffle-lz4": dict(hdf5plugin.Bitshuffle(cname="lz4")),
    "bitshuffle-zstd": dict(hdf5plugin.Bitshuffle(cname="zstd")),
}


def indexed(index: str, libver: str, filters: dict):
    def write(path: Path) -> None:
        limits, chunks = INDEXES[index]
        cells = random(np.dtype("<i4"), SHAPE, 7)
        with h5py.File(path, "w", libver=(libver, "latest")) as file:
            early = index == "implicit"
            if early:
                properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                properties.set_chunk(chunks)
                properties.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
                space = h5py.h5s.create_simple(SHAPE)
                h5py.h5d.create(file.id, b"full", h5py.h5t.STD_I32LE, space, properties)
                file["full"][...] = cells
                return
            options = dict(filters) if chunks else {}
            full = file.create_dataset("full", SHAPE, "<i4", maxshape=limits, chunks=chunks, **options)
            full[...] = cells
            part = file.create_dataset(
                "part", SHAPE, "<i4", maxshape=limits, chunks=chunks, fillvalue=-7, **options
            )
            part[10:20, 3:29] = cells[10:20, 3:29]
            if limits:
                grown = file.create_dataset(
                    "grown", (5, 30), "<i4", maxshape=limits, chunks=chunks, **options
                )
                grown[...] = cells[:5]
                grown.resize((41, 30))
                grown[30:] = cells[30:]
                grown.resize((37, 30))

    return write


def filtered(name: str):
    def write(path: Path) -> None:
        options = FILTERS[name]
        kinds = ["<i4", ">i2", "<u8", "<f4", ">f8", "i1"]
        if name == "scale-offset":
            kinds = ["<i4", ">i2", "<u8", "i1"]
        with h5py.File(path, "w") as file:
            for i, kind in enumerate(kinds):
                smooth = (np.arange(41 * 30).reshape(SHAPE) % 97).astype(kind)
                noise = random(np.dtype(kind), SHAPE, i)
                file.create_dataset(f"smooth{i}", data=smooth, chunks=(13, 9), **options)
                if name != "scale-offset":
                    file.create_dataset(f"noise{i}", data=noise, chunks=(13, 9), **options)

    return write


def scaled(path: Path) -> None:
    """Scale-offset of floating-point numbers, and n-bit, which h5py has no name for."""
    with h5py.File(path, "w") as file:
        cells = np.round(np.random.default_rng(1).normal(size=SHAPE) * 100, 2)
        for digits in (1, 3):
            for kind in ("<f4", "<f8"):
                file.create_dataset(
                    f"{kind[1:]}-{digits}", data=cells.astype(kind), chunks=(13, 9), scaleoffset=digits
                )
        file.create_dataset("bits", data=np.arange(1230).reshape(SHAPE) % 500, chunks=(13, 9), scaleoffset=9)


def nbit(path: Path) -> None:
    with h5py.File(path, "w") as file:
        for name, base, precision, offset in (
            ("i12", h5py.h5t.STD_I16LE, 12, 3),
            ("u15", h5py.h5t.STD_U16BE, 15, 0),
            ("i20", h5py.h5t.STD_I32LE, 20, 5),
        ):
            kind = base.copy()
            kind.set_precision(precision)
            kind.set_offset(offset)
            properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            properties.set_chunk((13, 9))
            properties.set_filter(h5py.h5z.FILTER_NBIT)
            space = h5py.h5s.create_simple(SHAPE)
            low = h5py.h5d.create(file.id, name.encode(), kind, space, properties)
            cells = (np.arange(1230).reshape(SHAPE) % 100).astype("<i4")
            low.write(h5py.h5s.ALL, h5py.h5s.ALL, cells)


def skipped(path: Path) -> None:
    """Chunks for which single filters were left out."""
    with h5py.File(path, "w") as file:
        data = file.create_dataset(
            "mixed", (20, 20), "<i4", chunks=(10, 10), shuffle=True, compression="gzip"
        )
        data[...] = np.arange(400).reshape(20, 20)
        raw = np.arange(100, dtype="<i4").reshape(10, 10)
        data.id.write_direct_chunk((0, 10), raw.tobytes(), filter_mask=3)


def compact(path: Path) -> None:
    with h5py.File(path, "w") as file:
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple((9, 5))
        low = h5py.h5d.create(file.id, b"compact", h5py.h5t.STD_I16BE, space, properties)
        low.write(h5py.h5s.ALL, h5py.h5s.ALL, np.arange(45, dtype="<i2").reshape(9, 5))


def external(path: Path) -> None:
    raw = path.with_suffix(".bin")
    cells = np.arange(600, dtype="<f4").reshape(20, 30)
    raw.write_bytes(b"header" + cells.tobytes())
    second = path.with_suffix(".two")
    second.write_bytes(cells[7:].tobytes())
    first = path.with_suffix(".one")
    first.write_bytes(cells[:7].tobytes())
    uneven = path.with_suffix(".three")
    uneven.write_bytes(cells.tobytes())
    with h5py.File(path, "w") as file:
        file.create_dataset("one", (20, 30), "<f4", external=[(str(raw), 6, 2400)])
        parts = [(str(first), 0, 7 * 120), (str(second), 0, 13 * 120)]
        file.create_dataset("two", (20, 30), "<f4", external=parts)
        parts = [(str(uneven), 0, 1000), (str(uneven), 1000, 1400)]
        file.create_dataset("uneven", (20, 30), "<f4", external=parts)


def user_block(size: int):
    def write(path: Path) -> None:
        with h5py.File(path, "w", userblock_size=size) as file:
            file["a"] = np.arange(1000).reshape(50, 20)
            file.create_dataset("b", data=np.arange(600).reshape(20, 30), chunks=(6, 7), compression="gzip")
            file["text"] = ["x", "yy"]
        with open(path, "r+b") as raw:
            raw.write(b"#" * size)

    return write


def space_strategy(strategy: str, persist: bool, page: int):
    def write(path: Path) -> None:
        options = dict(fs_strategy=strategy, fs_persist=persist, fs_threshold=1)
        if strategy == "page":
            options["fs_page_size"] = page
        with h5py.File(path, "w", **options) as file:
            for i in range(20):
                file[f"g{i}/a"] = np.arange(100 * (i + 1))
                file.create_dataset(f"g{i}/b", data=np.arange(2000), chunks=(77,), compression="gzip")
            for i in range(0, 20, 3):
                del file[f"g{i}/a"]
            file["late"] = np.arange(777)

    return write


def swmr(path: Path) -> None:
    with h5py.File(path, "w", libver="latest") as file:
        data = file.create_dataset("growing", (0, 8), "<f8", maxshape=(None, 8), chunks=(10, 8))
        other = file.create_dataset("both", (0, 0), "<i4", maxshape=(None, None), chunks=(5, 5))
        file.swmr_mode = True
        for i in range(1, 30):
            data.resize((i * 3, 8))
            data[(i - 1) * 3 :] = i
            data.flush()
            other.resize((i, i))
            other[-1, :] = i
            other.flush()


def many_chunks(libver: str):
    def write(path: Path) -> None:
        with h5py.File(path, "w", libver=(libver, "latest")) as file:
            for name, limits in (("fixed", None), ("one", (None, 60)), ("two", (None, None))):
                data = file.create_dataset(
                    name, (90, 60), "<i2", maxshape=limits, chunks=(1, 2), compression="gzip"
                )
                data[...] = np.arange(5400).reshape(90, 60)

    return write


def cases() -> Iterator[Case]:
    for libver in LIBVERS:
        for index in INDEXES:
            for name in ("none", "shuffle-deflate"):
                features = frozenset({f"index {index}", f"libver {libver}", f"filter {name}"})
                write = indexed(index, libver, FILTERS[name])
                yield Case(f"index-{index}-{name}-{libver}", features, write)
        features = frozenset({"many chunks", f"libver {libver}"})
        yield Case(f"many-{libver}", features, many_chunks(libver))
    for name in FILTERS:
        yield Case(f"filter-{name}", frozenset({f"filter {name}"}), filtered(name))
    for write in (scaled, nbit, skipped, compact, external, swmr):
        yield Case(write.__name__, frozenset({write.__name__}), write)
    for size in (512, 4096):
        yield Case(f"user-block-{size}", frozenset({"user block"}), user_block(size))
    for strategy, persist, page in (
        ("fsm", True, 0), ("fsm", False, 0), ("page", True, 4096), ("page", False, 65536),
        ("aggregate", False, 0), ("none", False, 0),
    ):
        name = f"space-{strategy}-{'kept' if persist else 'lost'}-{page}"
        features = frozenset({f"free space {strategy}"})
        yield Case(name, features, space_strategy(strategy, persist, page))
