"""Cells in files, as all workers exchange them.

Cells of fixed size are little-endian bytes in row-major order; strings are (length as 32-bit
little-endian, bytes) in the same order. The driver's `cells.rs` is the other side of this.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np


def is_variable(data_type: Any) -> bool:
    """True for strings and byte strings of any length."""
    return data_type in ("string", "bytes", "variable_length_bytes")


def numpy_dtype(data_type: Any) -> np.dtype:
    """The little-endian NumPy type of a Zarr v3 data type of fixed size."""
    if isinstance(data_type, str):
        if data_type.startswith("r") and data_type[1:].isdigit():
            return np.dtype(f"V{int(data_type[1:]) // 8}")
        return np.dtype(data_type).newbyteorder("<")
    name, config = data_type["name"], data_type["configuration"]
    match name:
        case "null_terminated_bytes":
            return np.dtype(f"S{config['length_bytes']}")
        case "fixed_length_utf32":
            return np.dtype(f"<U{config['length_bytes'] // 4}")
        case "raw_bytes":
            return np.dtype(f"V{config['length_bytes']}")
        case "numpy.datetime64":
            return np.dtype(f"<M8[{config['scale_factor']}{config['unit']}]")
        case "numpy.timedelta64":
            return np.dtype(f"<m8[{config['scale_factor']}{config['unit']}]")
        case "structured":
            return np.dtype([(field, numpy_dtype(inner)) for field, inner in config["fields"]])
    raise ValueError(f"no NumPy type is known for {data_type}")


def load(path: str, data_type: Any, shape: list[int]) -> np.ndarray:
    """The cells of a file, as an array."""
    if is_variable(data_type):
        cells = split_strings(Path(path).read_bytes())
        out = np.empty(len(cells), dtype=object)
        out[:] = [c.decode() for c in cells] if data_type == "string" else cells
        return out.reshape(shape)
    return np.fromfile(path, dtype=numpy_dtype(data_type)).reshape(shape)


def to_bytes(array: np.ndarray, data_type: Any) -> bytes:
    """The file form of an array."""
    if is_variable(data_type):
        flat = np.asarray(array).reshape(-1).tolist()
        return join_strings([c.encode() if isinstance(c, str) else bytes(c) for c in flat])
    return np.ascontiguousarray(array).astype(numpy_dtype(data_type), copy=False).tobytes()


def join_strings(cells: list[bytes]) -> bytes:
    """Strings in their file form."""
    return b"".join(struct.pack("<I", len(cell)) + cell for cell in cells)


def split_strings(data: bytes) -> list[bytes]:
    """Strings from their file form."""
    return take_strings(data, len(data))[0]


def take_strings(data: bytes, count: int) -> tuple[list[bytes], int]:
    """At most so many strings from the beginning of their file form, and how long that is."""
    cells, at = [], 0
    while at < len(data) and len(cells) < count:
        (length,) = struct.unpack_from("<I", data, at)
        cells.append(data[at + 4 : at + 4 + length])
        at += 4 + length
    return cells, at


def first_difference(array: np.ndarray, path: str, data_type: Any) -> int | None:
    """The byte where an array first differs from a file; None if they are the same bits."""
    if is_variable(data_type):
        mine, theirs = to_bytes(array, data_type), Path(path).read_bytes()
        if mine == theirs:
            return None
        same = (i for i, (a, b) in enumerate(zip(mine, theirs)) if a != b)
        return next(same, min(len(mine), len(theirs)))
    mine = np.ascontiguousarray(array).astype(numpy_dtype(data_type), copy=False)
    mine = mine.reshape(-1).view(np.uint8)
    theirs = np.memmap(path, dtype=np.uint8, mode="r")
    if mine.size != theirs.size:
        return min(mine.size, theirs.size)
    step = 64 << 20
    for start in range(0, mine.size, step):
        differs = mine[start : start + step] != theirs[start : start + step]
        if differs.any():
            return start + int(differs.argmax())
    return None
