"""A backend for xarray: `xr.open_dataset(url, engine="hyperslab")`, lazily, from any store.

Zarr and netCDF-4 (HDF5) are read alike. `chunks={}` makes dask chunks that are those of the file.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from xarray import Dataset, Variable
from xarray.backends import AbstractDataStore, BackendArray, BackendEntrypoint
from xarray.backends.store import StoreBackendEntrypoint
from xarray.coding.strings import create_vlen_dtype
from xarray.core import indexing

from ._array import Array
from ._group import Group
from ._open import open as open_node

__all__ = ["HyperslabBackendEntrypoint", "HyperslabStore"]

# Attributes that say how netCDF-4 is written in HDF5, and not what the data means.
HIDDEN = {
    "CLASS", "DIMENSION_LABELS", "DIMENSION_LIST", "NAME", "REFERENCE_LIST", "_NCProperties",
    "_Netcdf4Coordinates", "_Netcdf4Dimid", "_nc3_strict", "_ARRAY_DIMENSIONS",
}  # fmt: skip
# What netCDF writes as the name of a dimension that has no values.
NO_VARIABLE = "This is a netCDF dimension but not a netCDF variable"
# Attributes that are values of the variable's own type.
VALUES = {"_FillValue", "missing_value", "valid_min", "valid_max", "valid_range"}


class LazyArray(BackendArray):
    """Cells that are read when they are used."""

    def __init__(self, array: Array):
        self.array = array
        self.shape = array.shape
        self.dtype = create_vlen_dtype(str) if array._texts else array.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.VECTORIZED, self._read_any(key)
        )

    def _read_any(self, key: indexing.ExplicitIndexer) -> Any:
        def read(index: tuple[Any, ...]) -> Any:
            if isinstance(key, indexing.OuterIndexer):
                cells = self.array.oindex[index]
            else:
                cells = self.array[index]
            return cells.astype(object) if self.array._texts and np.ndim(cells) else cells

        return read


def dimensions(name: str, array: Array, attributes: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the dimensions of an array."""
    names = array.dimension_names or attributes.get("_ARRAY_DIMENSIONS") or ()
    names = [*names, *[None] * (array.ndim - len(names))]
    return tuple(n if n else f"{name}_dim_{i}" for i, n in enumerate(names))


def number(value: Any) -> Any:
    """Numbers that JSON has no word for."""
    return float(value) if value in ("NaN", "Infinity", "-Infinity") else value


def attribute(name: str, value: Any, array: Array | None) -> Any:
    """An attribute as xarray expects it: one number is no list, several are an array."""
    if isinstance(value, list):
        value = [number(one) if isinstance(one, str) else one for one in value]
        if len(value) == 1:
            value = value[0]
        elif value and all(isinstance(one, (int, float)) for one in value):
            value = np.asarray(value)
    if name in VALUES and array is not None and array.dtype.kind in "biufcmM":
        kind = array.dtype.kind
        if isinstance(value, str) and kind in "fc" and value not in ("NaN", "Infinity", "-Infinity"):
            # As xarray writes fill values into Zarr v3.
            value = struct.unpack("<d", base64.standard_b64decode(value)[:8])[0]
        value = np.asarray(number(value) if isinstance(value, str) else value).astype(array.dtype)[()]
    return value


class HyperslabStore(AbstractDataStore):
    """A group as xarray sees it."""

    def __init__(self, group: Group):
        self.group = group
        self._arrays = dict(group.arrays())

    def _is_variable(self, array: Array) -> bool:
        return not str(array.attrs.get("NAME", "")).startswith(NO_VARIABLE)

    def get_variables(self) -> dict[str, Variable]:
        return {
            name: self.variable(name, array)
            for name, array in self._arrays.items()
            if self._is_variable(array)
        }

    def variable(self, name: str, array: Array) -> Variable:
        said = array.attrs.asdict()
        names = dimensions(name, array, said)
        attributes = {n: attribute(n, v, array) for n, v in said.items() if n not in HIDDEN}
        encoding: dict[str, Any] = {"source": array.url, "dtype": array.dtype}
        chunks = array.shards or array.chunks
        if chunks:
            encoding["chunks"] = chunks
            encoding["preferred_chunks"] = dict(zip(names, chunks, strict=True))
        if array.format == "zarr2" and not array._described["no_fill"] and not array._texts:
            attributes["_FillValue"] = array.fill_value
        return Variable(names, indexing.LazilyIndexedArray(LazyArray(array)), attributes, encoding)

    def get_attrs(self) -> dict[str, Any]:
        said = self.group.attrs.asdict()
        return {n: attribute(n, v, None) for n, v in said.items() if n not in HIDDEN}

    def get_dimensions(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for name, array in self._arrays.items():
            names = dimensions(name, array, array.attrs.asdict())
            found |= dict(zip(names, array.shape, strict=True))
        return found

    def close(self) -> None:
        """There is nothing to close."""


class HyperslabBackendEntrypoint(BackendEntrypoint):
    """`engine="hyperslab"`"""

    description = "Open Zarr, HDF5 and netCDF-4 on any store with Hyperslab"
    url = "https://pypi.org/project/hyperslab"

    def _group(
        self,
        where: Any,
        group: str | None,
        storage_options: Mapping[str, Any] | None,
        options: Mapping[str, Any] | None,
    ) -> Group:
        node = where
        if not isinstance(where, Group):
            node = open_node(where, storage_options=storage_options, **(options or {}))
        if group:
            node = node[group]
        if not isinstance(node, Group):
            raise ValueError(f"{node.url} is an array, and a dataset is a group of arrays")
        return node

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        mask_and_scale: bool = True,
        decode_times: bool = True,
        concat_characters: bool = True,
        decode_coords: bool = True,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: bool | None = None,
        decode_timedelta: bool | None = None,
        group: str | None = None,
        storage_options: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Dataset:
        """Opens a dataset; `options` are those of `hyperslab.options`."""
        store = HyperslabStore(self._group(filename_or_obj, group, storage_options, options))
        return StoreBackendEntrypoint().open_dataset(
            store,
            mask_and_scale=mask_and_scale,
            decode_times=decode_times,
            concat_characters=concat_characters,
            decode_coords=decode_coords,
            drop_variables=drop_variables,
            use_cftime=use_cftime,
            decode_timedelta=decode_timedelta,
        )

    open_dataset_parameters = (
        "filename_or_obj", "mask_and_scale", "decode_times", "concat_characters", "decode_coords",
        "drop_variables", "use_cftime", "decode_timedelta", "group", "storage_options", "options",
    )  # fmt: skip

    def open_groups_as_dict(self, filename_or_obj: Any, **how: Any) -> dict[str, Dataset]:
        """All groups of a hierarchy, for `xr.open_datatree`."""
        top = self._group(
            filename_or_obj, how.pop("group", None), how.pop("storage_options", None), how.pop("options", None)
        )
        found = {"/": self.open_dataset(top, **how)}
        for path, node in top.walk():
            if isinstance(node, Group):
                found[f"/{path}"] = self.open_dataset(node, **how)
        return found

    def open_datatree(self, filename_or_obj: Any, **how: Any) -> Any:
        from xarray import DataTree

        return DataTree.from_dict(self.open_groups_as_dict(filename_or_obj, **how))

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Other engines know these files, too: ours is asked for by name."""
        return False
