"""zarr-python: as it is, with more requests in flight, and with the zarrs codec pipeline.

Local arrays use its LocalStore; S3 goes through obstore, its recommended fast store.
"""

from __future__ import annotations

import importlib.metadata
from typing import Any

import numpy as np
import obstore
import zarr
from zarr.dtype import parse_dtype

from . import Peer


class ZarrPython(Peer):
    """zarr-python with some settings."""

    def __init__(self, packages: tuple[str, ...], **settings: Any):
        self.packages = packages
        zarr.config.set(settings)

    def versions(self) -> dict[str, str]:
        return {name: importlib.metadata.version(name) for name in self.packages}

    def store(self, url: str) -> Any:
        if not url.startswith("s3://"):
            return zarr.storage.LocalStore(url)
        inner = obstore.store.from_url(url, client_options={"allow_http": True})
        return zarr.storage.ObjectStore(inner)

    def open(self, url: str, data_type: Any) -> Any:
        return zarr.open_array(self.store(url), mode="r")

    def create(self, url: str, spec: dict[str, Any]) -> Any:
        dtype = parse_dtype(spec["data_type"], zarr_format=3)
        return zarr.create(
            store=self.store(url),
            shape=tuple(spec["shape"]),
            chunks=tuple(spec["chunk_shape"]),
            dtype=dtype,
            fill_value=dtype.from_json_scalar(spec["fill_value"], zarr_format=3),
            codecs=spec["codecs"],
            zarr_format=3,
        )

    def create_v2(self, url: str, spec: dict[str, Any]) -> Any:
        import numcodecs

        codec = spec["compressor"]
        return zarr.create(
            store=self.store(url),
            shape=tuple(spec["shape"]),
            chunks=tuple(spec["chunks"]),
            dtype=spec["dtype"] if isinstance(spec["dtype"], str)
            else np.dtype([tuple(field) for field in spec["dtype"]]),
            compressor=None if codec is None else numcodecs.get_codec(dict(codec)),
            filters=[numcodecs.get_codec(dict(f)) for f in spec["filters"]] or None,
            order=spec["order"],
            fill_value=spec["fill_value"],
            dimension_separator=spec["dimension_separator"],
            zarr_format=2,
        )

    def read(self, array: Any) -> Any:
        return array[...]

    def write(self, array: Any, where: tuple[slice, ...], cells: np.ndarray) -> None:
        array[where] = cells


def make(name: str) -> Peer:
    """The variant of this name."""
    packages = ("zarr", "numcodecs", "obstore", "numpy")
    match name:
        case "zarr-python":
            return ZarrPython(packages)
        case "zarr-python-64":
            return ZarrPython(packages, **{"async.concurrency": 64})
        case "zarr+zarrs":
            pipeline = {"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}
            return ZarrPython((*packages, "zarrs"), **pipeline)
        case "zarr+zarrs-64":
            # With RAYON_NUM_THREADS=64 in its environment: its threads are its requests in flight.
            settings = {
                "codec_pipeline.path": "zarrs.ZarrsCodecPipeline",
                "codec_pipeline.chunk_concurrent_maximum": 64,
                "threading.max_workers": 64,
            }
            return ZarrPython((*packages, "zarrs"), **settings)
    raise ValueError(f"there is no variant {name!r} of zarr-python")
