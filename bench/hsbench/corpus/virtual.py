"""Virtual datasets: every way to map, with sources in the same and in other files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np

from . import Case

UNLIMITED = h5py.h5s.UNLIMITED


def sources(path: Path, count: int, shape: tuple[int, ...], dtype: str = "<i4") -> list[Path]:
    files = []
    for i in range(count):
        file = path.with_name(f"{path.stem}-{i}.h5")
        cells = (np.arange(np.prod(shape)) + 1000 * i).astype(dtype).reshape(shape)
        with h5py.File(file, "w") as opened:
            opened.create_dataset("data", data=cells, chunks=True, maxshape=(None, *shape[1:]))
        files.append(file)
    return files


def stacked(path: Path) -> None:
    files = sources(path, 4, (10, 6))
    layout = h5py.VirtualLayout((4, 10, 6), "<i4")
    for i, file in enumerate(files):
        layout[i] = h5py.VirtualSource(file.name, "data", shape=(10, 6))
    with h5py.File(path, "w", libver="latest") as out:
        out.create_virtual_dataset("stacked", layout, fillvalue=-1)


def concatenated(path: Path) -> None:
    files = sources(path, 3, (10, 6))
    layout = h5py.VirtualLayout((35, 6), "<i4")
    for i, file in enumerate(files):
        layout[i * 12 : i * 12 + 10] = h5py.VirtualSource(file.name, "data", shape=(10, 6))
    with h5py.File(path, "w", libver="latest") as out:
        out.create_virtual_dataset("gaps", layout, fillvalue=-9)


def interleaved(path: Path) -> None:
    files = sources(path, 3, (10, 6))
    layout = h5py.VirtualLayout((30, 6), "<i4")
    for i, file in enumerate(files):
        layout[i::3] = h5py.VirtualSource(file.name, "data", shape=(10, 6))
    with h5py.File(path, "w", libver="latest") as out:
        out.create_virtual_dataset("rows", layout)


def parts(path: Path) -> None:
    files = sources(path, 2, (10, 6))
    layout = h5py.VirtualLayout((8, 8), "<i4")
    first = h5py.VirtualSource(files[0].name, "data", shape=(10, 6))
    second = h5py.VirtualSource(files[1].name, "data", shape=(10, 6))
    layout[:4, :3] = first[2:10:2, 1:4]
    layout[4:, 5:] = second[:4, ::2]
    with h5py.File(path, "w", libver="latest") as out:
        out.create_virtual_dataset("parts", layout, fillvalue=7)


def same_file(path: Path) -> None:
    with h5py.File(path, "w", libver="latest") as out:
        out["a"] = np.arange(20)
        out["b"] = np.arange(20) * 10
        layout = h5py.VirtualLayout((2, 20), "<i8")
        layout[0] = h5py.VirtualSource(out["a"])
        layout[1] = h5py.VirtualSource(out["b"])
        out.create_virtual_dataset("both", layout)
        nested = h5py.VirtualLayout((20, 2), "<i8")
        nested[:, 0] = h5py.VirtualSource(".", "both", shape=(2, 20))[1]
        nested[:, 1] = h5py.VirtualSource(".", "both", shape=(2, 20))[0]
        out.create_virtual_dataset("nested", nested)


def reshaped(path: Path) -> None:
    with h5py.File(path, "w", libver="latest") as out:
        out["flat"] = np.arange(24)
        layout = h5py.VirtualLayout((4, 6), "<i8")
        source = h5py.VirtualSource(".", "flat", shape=(24,))
        layout[:, :] = source[:]
        out.create_virtual_dataset("table", layout)


def dangling(path: Path) -> None:
    files = sources(path, 2, (10, 6))
    layout = h5py.VirtualLayout((3, 10, 6), "<i4")
    for i, name in enumerate([files[0].name, "not-there.h5", files[1].name]):
        layout[i] = h5py.VirtualSource(name, "data" if i < 2 else "no-such", shape=(10, 6))
    with h5py.File(path, "w", libver="latest") as out:
        out.create_virtual_dataset("holes", layout, fillvalue=-5)


def growing(path: Path) -> None:
    """A mapping without limit to a source that is longer now."""
    [file] = sources(path, 1, (10, 6))
    layout = h5py.VirtualLayout((10, 6), "<i4", maxshape=(None, 6))
    source = h5py.VirtualSource(file.name, "data", shape=(10, 6), maxshape=(None, 6))
    layout[:UNLIMITED, :] = source[:UNLIMITED, :]
    with h5py.File(path, "w", libver="latest") as out:
        out.create_virtual_dataset("long", layout, fillvalue=-1)
    with h5py.File(file, "a") as opened:
        opened["data"].resize((17, 6))
        opened["data"][10:] = 5


def numbered(path: Path) -> None:
    """One source file for each block, found by its number."""
    sources(path, 5, (4, 6))
    name = f"{path.stem}-%b.h5"
    with h5py.File(path, "w", libver="latest") as out:
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        space = h5py.h5s.create_simple((4, 6), (UNLIMITED, 6))
        space.select_hyperslab((0, 0), (UNLIMITED, 1), (4, 1), (4, 6))
        source = h5py.h5s.create_simple((4, 6))
        properties.set_virtual(space, name.encode(), b"data", source)
        kind = h5py.h5t.STD_I32LE
        h5py.h5d.create(out.id, b"numbered", kind, h5py.h5s.create_simple((4, 6), (UNLIMITED, 6)), properties)


def converted(path: Path) -> None:
    files = sources(path, 2, (10, 6), ">i2")
    layout = h5py.VirtualLayout((2, 10, 6), "<f8")
    for i, file in enumerate(files):
        layout[i] = h5py.VirtualSource(file.name, "data", shape=(10, 6), dtype=">i2")
    with h5py.File(path, "w", libver="latest") as out:
        out.create_virtual_dataset("floats", layout)


def texts(path: Path) -> None:
    kind = h5py.string_dtype()
    file = path.with_name(f"{path.stem}-0.h5")
    with h5py.File(file, "w") as opened:
        opened.create_dataset("data", data=np.array([f"word {i}" for i in range(12)], object), dtype=kind)
    layout = h5py.VirtualLayout((20,), kind)
    layout[3:15] = h5py.VirtualSource(file.name, "data", shape=(12,), dtype=kind)
    with h5py.File(path, "w", libver="latest") as out:
        out.create_virtual_dataset("texts", layout)


def many(path: Path) -> None:
    files = sources(path, 60, (3, 5))
    layout = h5py.VirtualLayout((180, 5), "<i4")
    for i, file in enumerate(files):
        layout[i * 3 : i * 3 + 3] = h5py.VirtualSource(file.name, "data", shape=(3, 5))
    with h5py.File(path, "w", libver="latest") as out:
        out.create_virtual_dataset("many", layout)


def cases() -> Iterator[Case]:
    for write in (
        stacked, concatenated, interleaved, parts, same_file, reshaped, dangling, growing, numbered,
        converted, texts, many,
    ):
        name = write.__name__.replace("_", "-")
        yield Case(f"virtual-{name}", frozenset({f"virtual {name}"}), write)
