"""Opening, making and removing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _core
from ._array import Array
from ._attributes import as_json, plain
from ._dtypes import TEXT, described, fill_cell
from ._errors import InvalidError
from ._group import Group, node_of
from ._layouts import codecs_of, numbers, sides_of
from ._options import session_for
from ._places import place_of

__all__ = [
    "aopen", "create", "create_group", "open", "open_array", "open_group", "profile", "remove", "save",
]  # fmt: skip


def open(where: Any, *, storage_options: Mapping[str, Any] | None = None, **options: Any) -> Array | Group:  # noqa: A001
    """Opens the array or group at a URL or path: Zarr, HDF5 and reference files, on any store.

    `where` may also be a store or file of fsspec or obstore, or a store of zarr-python.
    `storage_options` are credentials and the like, by the names of fsspec, obstore or Hyperslab; without
    them each cloud's own environment variables count. `options` are those of `hyperslab.options`.
    """
    url, storage = place_of(where, storage_options)
    return node_of(session_for(options, storage).open(url))


async def aopen(where: Any, **how: Any) -> Array | Group:
    """Opens while other tasks go on."""
    return await asyncio.to_thread(open, where, **how)


def open_array(where: Any, **how: Any) -> Array:
    """Opens an array; a group is an error."""
    node = open(where, **how)
    if not isinstance(node, Array):
        raise InvalidError(f"{node.url} is a group, not an array", "name one of its arrays")
    return node


def open_group(where: Any, **how: Any) -> Group:
    """Opens a group; an array is an error."""
    node = open(where, **how)
    if not isinstance(node, Group):
        raise InvalidError(f"{node.url} is an array, not a group")
    return node


def create(where: Any, *, storage_options: Mapping[str, Any] | None = None, **how: Any) -> Array:
    """Makes an array, as Zarr v3, and the groups above it.

    - `shape` and `dtype`: as NumPy has them; "string" and "bytes" are cells of any length.
    - `chunks`, `shards`: shapes; without them a size that suits the store is chosen. `shards=()` has none.
    - `compression`: `None` for the default (zstd), `False` or `[]` for none, or codecs as Zarr v3 spells
      them: `{"name": "blosc", "configuration": {…}}`, a list of such, or "zstd" and "gzip", with a
      level or not: "zstd:9".
    - `order`: the order of dimensions in chunks.
    - `fill_value`, `attributes`, `dimension_names`, `overwrite`.

    Anything else is an option of `hyperslab.options`.
    """
    ours = {name: how.pop(name) for name in list(how) if name in SPEC}
    url, storage = place_of(where, storage_options)
    return create_in(session_for(how, storage), url, **ours)


SPEC = (
    "shape", "dtype", "chunks", "shards", "compression", "order", "fill_value", "attributes",
    "dimension_names", "overwrite",
)  # fmt: skip


def create_in(
    session: _core.Session,
    url: str,
    *,
    shape: int | Sequence[int],
    dtype: Any,
    chunks: int | Sequence[int] | None = None,
    shards: int | Sequence[int] | None = None,
    compression: Any = None,
    order: Sequence[int] | None = None,
    fill_value: Any = None,
    attributes: Mapping[str, Any] | None = None,
    dimension_names: Sequence[str | None] | None = None,
    overwrite: bool = False,
) -> Array:
    """Makes an array in a session."""
    sides = numbers(shape, "shape")
    found, name = described(dtype)

    spec = {
        "shape": sides,
        "dtype": name,
        "chunks": sides_of(chunks, len(sides), "chunks"),
        "shards": sides_of(shards, len(sides), "shards"),
        "compression": codecs_of(compression),
        "order": None if order is None else numbers(order, "order"),
        "attributes": json.loads(as_json(attributes or {})),
        "dimension_names": None if dimension_names is None else list(dimension_names),
    }
    cell = None
    if fill_value is not None:
        if found == TEXT or found.kind == "O":
            spec["fill_value"] = fill_value
        else:
            cell = fill_cell(fill_value, found)
    text = json.dumps(spec, default=plain)
    return Array(session.create_array(url, text, cell, overwrite))


def save(where: Any, cells: Any, **how: Any) -> Array:
    """Makes an array of cells: `create` with their shape and type, then a write of all of them."""
    if isinstance(cells, Array):
        cells = cells.read()
    cells = np.asarray(cells)
    dtype = how.pop("dtype", cells.dtype)
    array = create(where, shape=cells.shape, dtype=dtype, **how)
    array[...] = cells
    return array


def create_group(
    where: Any,
    attributes: Mapping[str, Any] | None = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> Group:
    """Makes a group, and those above it; one that is there is opened."""
    url, storage = place_of(where, storage_options)
    return Group(session_for(options, storage).create_group(url, as_json(attributes or {})))


def remove(where: Any, *, storage_options: Mapping[str, Any] | None = None, **options: Any) -> int:
    """Removes an array or a group with all below it; returns how many objects went."""
    url, storage = place_of(where, storage_options)
    return session_for(options, storage).remove(url)


def profile(
    where: Any,
    *,
    bytes: int = 256 << 20,  # noqa: A002
    seconds: float = 60.0,
    output: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Measures an endpoint (and the function that `function=URL` names) for the planner.

    Test data is written below the URL and removed again. The profile is kept in the configuration folder
    under the name of its endpoint, or in `output`; every later read from there is planned with it.
    """
    url, storage = place_of(where, storage_options)
    session = session_for(options, storage)
    return json.loads(session.profile(url, bytes, float(seconds), output))
