"""tensorstore, with its documented settings for many requests in flight and without caches."""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
from typing import Any

import numpy as np
import tensorstore as ts

from ..cells import numpy_dtype
from . import Peer

# Like the others it leaves syncing to the operating system; its default would wait for the disk
# after every chunk. Requests in flight: 64, as ours; its default of 32 was slower or equal.
CONTEXT = {
    "cache_pool": {"total_bytes_limit": 0},
    "file_io_sync": False,
    "s3_request_concurrency": {"limit": 64},
}

SPELLED_BY_BYTES = ("raw_bytes", "structured")


def opaque(data_type: Any) -> bool:
    """True for types that tensorstore opens as bytes only."""
    if isinstance(data_type, str):
        return data_type.startswith("r") and data_type[1:].isdigit()
    return data_type["name"] in SPELLED_BY_BYTES


class TensorStore(Peer):
    """tensorstore's zarr3 and zarr drivers."""

    def __init__(self) -> None:
        self.context = ts.Context(CONTEXT)

    def versions(self) -> dict[str, str]:
        return {name: importlib.metadata.version(name) for name in ("tensorstore", "numpy")}

    def kvstore(self, url: str) -> dict[str, Any]:
        if not url.startswith("s3://"):
            return {"driver": "file", "path": url.rstrip("/") + "/"}
        bucket, path = url.removeprefix("s3://").split("/", 1)
        return {
            "driver": "s3",
            "bucket": bucket,
            "path": path.rstrip("/") + "/",
            "endpoint": os.environ["AWS_ENDPOINT_URL"],
            "aws_region": os.environ["AWS_REGION"],
            "aws_credentials": {"type": "environment"},
        }

    def spec(self, url: str, data_type: Any) -> dict[str, Any]:
        spec = {"driver": "zarr3", "kvstore": self.kvstore(url)}
        if opaque(data_type):
            spec["open_as_void"] = True
        return spec

    def open(self, url: str, data_type: Any) -> Any:
        return ts.open(self.spec(url, data_type), context=self.context, open=True).result()

    def create(self, url: str, spec: dict[str, Any]) -> Any:
        metadata = {
            "shape": spec["shape"],
            "data_type": spec["data_type"],
            "fill_value": spec["fill_value"],
            "codecs": spec["codecs"],
            "chunk_grid": {
                "name": "regular",
                "configuration": {"chunk_shape": spec["chunk_shape"]},
            },
            "chunk_key_encoding": {"name": "default"},
        }
        full = self.spec(url, spec["data_type"]) | {"metadata": metadata}
        return ts.open(full, context=self.context, create=True).result()

    def create_v2(self, url: str, spec: dict[str, Any]) -> Any:
        if spec["filters"]:
            raise ValueError("tensorstore writes no filters of Zarr v2")
        keys = ("shape", "chunks", "dtype", "compressor", "order", "fill_value")
        metadata = {key: spec[key] for key in keys}
        metadata["filters"] = None
        metadata["dimension_separator"] = spec["dimension_separator"]
        full = {"driver": "zarr", "kvstore": self.kvstore(url), "metadata": metadata}
        return ts.open(full, context=self.context, create=True).result()

    def read(self, array: Any) -> Any:
        return array.read().result()

    def query(self, array: Any, where: tuple[slice, ...]) -> Any:
        return array[where].read().result()

    def write(self, array: Any, where: tuple[slice, ...], cells: np.ndarray) -> None:
        if array.dtype == ts.byte:
            # Opened as bytes: one more dimension, along the bytes of a cell.
            cells = cells.reshape(*cells.shape, 1).view(np.dtype("V1"))
            where = (*where, slice(None))
        array[where].write(cells, can_reference_source_data_indefinitely=True).result()

    def result(self, cells: Any, data_type: Any) -> np.ndarray:
        if opaque(data_type):
            return as_bytes(cells).view(numpy_dtype(data_type)).reshape(cells.shape[:-1])
        return np.asarray(cells)


def as_bytes(cells: np.ndarray) -> np.ndarray:
    """The bytes of an array of bytes, which tensorstore 0.1.86 hands to NumPy as `V0`: the shape
    and the memory are right, the size of an element is not."""
    if cells.dtype.itemsize != 0:
        return np.ascontiguousarray(cells).view(np.uint8)
    memory = (ctypes.c_uint8 * cells.size).from_address(cells.ctypes.data)
    return np.frombuffer(memory, dtype=np.uint8).reshape(cells.shape).copy()


def make(_: str) -> Peer:
    """The one variant."""
    return TensorStore()
