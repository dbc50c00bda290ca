"""Arrays of Zarr v2, which peers write and Hyperslab reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ._chains import CHUNK, SHAPE

# (label, Zarr v3 spelling of the cells, Zarr v2 dtype, fill value)
TYPES: list[tuple[str, Any, Any, Any]] = [
    ("bool", "bool", "|b1", True),
    ("int8", "int8", "|i1", -5),
    ("int16", "int16", "<i2", 11),
    ("int32 big", "int32", ">i4", -70000),
    ("int64", "int64", "<i8", -9223372036854775808),
    ("uint8", "uint8", "|u1", 255),
    ("uint16 big", "uint16", ">u2", 513),
    ("uint32", "uint32", "<u4", 4294967295),
    ("uint64", "uint64", "<u8", 18446744073709551615),
    ("float16", "float16", "<f2", 1.5),
    ("float32", "float32", "<f4", "NaN"),
    ("float64 big", "float64", ">f8", "Infinity"),
    ("complex64", "complex64", "<c8", None),
    ("complex128 big", "complex128", ">c16", None),
    ("S5", {"name": "null_terminated_bytes", "configuration": {"length_bytes": 5}}, "|S5", None),
    ("U3", {"name": "fixed_length_utf32", "configuration": {"length_bytes": 12}}, "<U3", None),
    (
        "structured",
        {"name": "structured", "configuration": {"fields": [["x", "int16"], ["y", "float32"]]}},
        [["x", "<i2"], ["y", ">f4"]],
        None,
    ),
]

COMPRESSORS: dict[str, Any] = {
    "raw": None,
    "zlib": {"id": "zlib", "level": 1},
    "gzip": {"id": "gzip", "level": 3},
    "zstd": {"id": "zstd", "level": 3},
    "blosc": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
}


def specs() -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """(name, Zarr v3 spelling of the cells, what the `.zarray` says)."""
    for label, data_type, dtype, fill in TYPES:
        for compressor, configuration in COMPRESSORS.items():
            for order, separator in (("C", "."), ("F", "/")):
                yield f"{label}, {compressor}, {order}", data_type, {
                    "shape": list(SHAPE),
                    "chunks": list(CHUNK),
                    "data_type": data_type,
                    "dtype": dtype,
                    "fill_value": fill,
                    "compressor": configuration,
                    "filters": [],
                    "order": order,
                    "dimension_separator": separator,
                }
        if isinstance(dtype, str) and np.dtype(dtype).itemsize > 1:
            yield f"{label}, shuffle filter + zlib", data_type, {
                "shape": list(SHAPE),
                "chunks": list(CHUNK),
                "data_type": data_type,
                "dtype": dtype,
                "fill_value": fill,
                "compressor": COMPRESSORS["zlib"],
                "filters": [{"id": "shuffle", "elementsize": np.dtype(dtype).itemsize}],
                "order": "C",
                "dimension_separator": ".",
            }
