"""Data types between NumPy and the engine."""

from __future__ import annotations

import ast
import json
from typing import Any

import numpy as np

from ._errors import InvalidError

__all__ = ["TEXT", "described", "dtype_of", "fill_cell", "flat"]

# Texts of any length: NumPy's own type where it has one.
_own = getattr(getattr(np, "dtypes", None), "StringDType", None)
TEXT = np.dtype(object) if _own is None else _own()


def dtype_of(descr: str | None, kind: str) -> np.dtype:
    """The NumPy type of cells, as the engine describes them."""
    if descr is None:
        return TEXT if kind == "string" else np.dtype(object)
    return np.lib.format.descr_to_dtype(ast.literal_eval(descr))


def described(dtype: Any) -> tuple[np.dtype, Any]:
    """A NumPy type, and what the engine calls it."""
    if isinstance(dtype, str) and dtype in ("string", "bytes"):
        return (TEXT if dtype == "string" else np.dtype(object)), dtype
    try:
        found = np.dtype(dtype)
    except TypeError as reason:
        raise InvalidError(f"{dtype!r} is no data type: {reason}") from None
    if found.kind == "T" or found == np.dtype(str) and found.itemsize == 0:
        return TEXT, "string"
    if found.kind == "O":
        return TEXT, "string"
    if found.itemsize == 0:
        raise InvalidError(
            f"cells of {found!r} have no bytes", 'give a length, such as "S8", or "string"'
        )
    # Holes between fields are not stored.
    descr = np.lib.format.dtype_to_descr(found)
    return found, json.loads(json.dumps(descr)) if isinstance(descr, list) else descr


def fill_cell(value: Any, dtype: np.dtype) -> bytes:
    """One cell, as it is stored in memory."""
    cell = np.asarray(value).astype(dtype.newbyteorder("<"), casting="unsafe")
    if cell.ndim:
        raise InvalidError("a fill value is one cell")
    return cell.tobytes()


def flat(array: np.ndarray) -> np.ndarray:
    """The bytes of an array that is contiguous."""
    return array.reshape(-1).view(np.uint8)
