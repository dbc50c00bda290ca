"""Every data type, in files of every version."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np

from . import Case

LIBVERS = ("earliest", "v108", "v110", "v112", "v114")
SHAPE = (23, 17)
NUMBERS = [
    "?", "i1", "<i2", ">i2", "<i4", ">i4", "<i8", ">i8", "u1", "<u2", ">u2", "<u4", ">u4", "<u8",
    ">u8", "<f2", ">f2", "<f4", ">f4", "<f8", ">f8", "<c8", ">c8", "<c16", ">c16",
]
OTHERS = {
    "S1": "S1",
    "S7": "S7",
    "V5": "V5",
    "compound": [("a", "<i4"), ("b", ">f8"), ("c", "S3"), ("d", "?")],
    "aligned": np.dtype([("a", "i1"), ("b", "<f8"), ("c", "<i2")], align=True),
    "nested": [("p", [("x", "<f4"), ("y", ">f4")]), ("n", "<u2")],
    "array-member": [("id", "<i8"), ("v", "<f4", (2, 3))],
    "datetime": h5py.opaque_dtype(np.dtype("<M8[us]")),
}


def random(dtype: np.dtype, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Random bits, as far as every one of them is a value."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.fields:
        out = np.zeros(shape, dtype)
        for i, name in enumerate(dtype.names):
            kind = dtype[name]
            out[name] = random(kind.base, shape + kind.shape, seed + i + 1)
        return out
    if dtype == bool:
        return rng.integers(0, 2, shape).astype(bool)
    count = int(np.prod(shape, dtype=int)) * dtype.itemsize
    raw = rng.integers(0, 256, count, dtype=np.uint8)
    if dtype.kind == "S":
        raw = raw % 26 + 65
    return np.frombuffer(raw.tobytes(), dtype).reshape(shape)


def simple(dtype, libver: str, seed: int):
    def write(path: Path) -> None:
        cells = random(np.dtype(dtype), SHAPE, seed)
        with h5py.File(path, "w", libver=(libver, "latest")) as file:
            file.create_dataset("plain", data=cells, dtype=dtype)
            file.create_dataset("chunked", data=cells, dtype=dtype, chunks=(6, 5))
            file.create_dataset(
                "filtered", data=cells, dtype=dtype, chunks=(6, 5), compression="gzip", shuffle=True
            )
            file.create_dataset("scalar", data=cells[0, 0], dtype=dtype)
            file.create_dataset("empty", (0, 4), dtype, maxshape=(None, 4))
            file.create_dataset("unwritten", SHAPE, dtype, chunks=(6, 5))

    return write


def enums(path: Path) -> None:
    with h5py.File(path, "w") as file:
        for base in ("i1", "<u2", ">i4", "<i8"):
            kind = h5py.enum_dtype({"RED": 0, "GREEN": 1, "BLUE": 42}, basetype=base)
            file.create_dataset(base.strip("<>"), data=np.arange(12).reshape(3, 4) % 43, dtype=kind)


def arrays(path: Path) -> None:
    with h5py.File(path, "w") as file:
        kind = np.dtype(("<f4", (2, 3)))
        cells = random(np.dtype("<f4"), (7, 5, 2, 3), 3)
        file.create_dataset("plain", (7, 5), kind)[...] = cells
        file.create_dataset("chunked", (7, 5), kind, chunks=(3, 2), compression="gzip")[...] = cells


def strings(path: Path) -> None:
    words = ["", "α", "word", "a longer one\n", "x" * 1000]
    with h5py.File(path, "w") as file:
        cells = np.array([words[i % 5] for i in range(60)], dtype=object).reshape(12, 5)
        for name, kind in (("utf8", h5py.string_dtype()), ("ascii", h5py.string_dtype("ascii"))):
            data = cells.copy()
            if name == "ascii":
                data.flat = [word.replace("α", "a") for word in cells.flat]
            file.create_dataset(f"{name}/plain", data=data, dtype=kind)
            file.create_dataset(f"{name}/chunked", data=data, dtype=kind, chunks=(5, 2))
            file.create_dataset(
                f"{name}/filtered", data=data, dtype=kind, chunks=(5, 2), compression="gzip"
            )
            file.create_dataset(f"{name}/unwritten", (3, 2), dtype=kind)
        file.create_dataset("scalar", data="one", dtype=h5py.string_dtype())
        fixed = h5py.string_dtype("utf-8", 9)
        file.create_dataset("fixed", data=np.array([w.encode()[:9] for w in words], fixed))
        for padding in (h5py.h5t.STR_NULLTERM, h5py.h5t.STR_NULLPAD, h5py.h5t.STR_SPACEPAD):
            kind = h5py.h5t.C_S1.copy()
            kind.set_size(6)
            kind.set_strpad(padding)
            space = h5py.h5s.create_simple((3,))
            low = h5py.h5d.create(file.id, f"pad{padding}".encode(), kind, space)
            low.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([b"ab", b"abcde", b""], "S6"))


def sequences(path: Path) -> None:
    with h5py.File(path, "w") as file:
        # Not big-endian ones: h5py hands out their bytes as if they were little-endian.
        for base in ("<i4", "<f8", "u1"):
            data = file.create_dataset(base.strip("<>"), (11,), h5py.vlen_dtype(np.dtype(base)))
            for i in range(0, 11, 2):
                data[i] = random(np.dtype(base), (i * 7,), i)
        chunked = file.create_dataset(
            "chunked", (9, 3), h5py.vlen_dtype(np.dtype("<i2")), chunks=(4, 2), compression="gzip"
        )
        for i in range(9):
            chunked[i, i % 3] = np.arange(i)


def records(path: Path) -> None:
    """Elements of which only parts have no fixed length, and fill values in the heap."""
    kind = np.dtype(
        [
            ("name", h5py.string_dtype()),
            ("number", "<i4"),
            ("values", h5py.vlen_dtype(np.dtype("<f4"))),
            ("inner", [("text", h5py.string_dtype()), ("x", ">f8")]),
        ]
    )
    with h5py.File(path, "w") as file:
        for name, options in (
            ("contiguous", {}),
            ("chunked", {"chunks": (4,), "compression": "gzip"}),
            ("sparse", {"chunks": (2,)}),
        ):
            data = file.create_dataset(name, (13,), kind, **options)
            for i in range(0, 13, 6 if name == "sparse" else 1):
                values = random(np.dtype("<f4"), (i % 5,), i)
                data[i] = (f"näme {i}", -i, values, (f"t{i}" * (i % 3), i / 3))
        words = file.create_dataset("words", (7, 2), h5py.vlen_dtype(h5py.string_dtype()), chunks=(3, 2))
        for i in range(0, 7, 2):
            words[i, 1] = np.array(["a" * j for j in range(i)], dtype=object)
        filled = file.create_dataset(
            "filled", (9,), h5py.string_dtype(), chunks=(3,), fillvalue="nobody wrote this"
        )
        filled[4] = "somebody did"


def references(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["target"] = np.arange(6)
        group = file.create_group("group")
        object_reference = file.create_dataset("objects", (3,), h5py.ref_dtype)
        object_reference[0], object_reference[1] = file["target"].ref, group.ref
        regions = file.create_dataset("regions", (2,), h5py.regionref_dtype)
        regions[0] = file["target"].regionref[1:4]
        file.attrs["reference"] = group.ref


def odd_numbers(path: Path) -> None:
    """Numbers whose bits do not fill their bytes, and sizes that no language has."""
    with h5py.File(path, "w") as file:
        for name, base, precision, offset in (
            ("u12", h5py.h5t.STD_U16LE, 12, 0),
            ("i12", h5py.h5t.STD_I16BE, 12, 2),
            ("i20", h5py.h5t.STD_I32LE, 20, 5),
        ):
            kind = base.copy()
            kind.set_precision(precision)
            kind.set_offset(offset)
            space = h5py.h5s.create_simple((40,))
            low = h5py.h5d.create(file.id, name.encode(), kind, space)
            low.write(h5py.h5s.ALL, h5py.h5s.ALL, np.arange(-20, 20, dtype="<i8"))


def cases() -> Iterator[Case]:
    for libver in LIBVERS:
        for i, dtype in enumerate(NUMBERS):
            name = f"number-{dtype.replace('<', 'le-').replace('>', 'be-').replace('?', 'bool')}"
            features = {f"type {np.dtype(dtype).newbyteorder('=')}", f"libver {libver}"}
            features.add("big-endian" if dtype.startswith(">") else "little-endian")
            yield Case(f"{name}-{libver}", frozenset(features), simple(dtype, libver, i))
    for libver in ("earliest", "v114"):
        for i, (name, dtype) in enumerate(OTHERS.items()):
            features = frozenset({f"type {name}", f"libver {libver}"})
            yield Case(f"type-{name}-{libver}", features, simple(dtype, libver, 100 + i))
    for write in (enums, arrays, strings, sequences, records, references, odd_numbers):
        name = write.__name__.replace("_", "-")
        yield Case(name, frozenset({f"type {name}"}), write)
