"""icechunk: zarr-python over its transactional store, with 64 requests in flight."""

from __future__ import annotations

import importlib.metadata
import os
from typing import Any

import icechunk
import numpy as np
import zarr

from . import Peer, codec_names


class Icechunk(Peer):
    """One repository per array. Chunks are not cached, which is its default; manifests are, as
    they are what opening an array loads."""

    def __init__(self) -> None:
        zarr.config.set({"async.concurrency": 64})

    def versions(self) -> dict[str, str]:
        return {"icechunk": importlib.metadata.version("icechunk")}

    def storage(self, url: str) -> Any:
        if not url.startswith("s3://"):
            return icechunk.local_filesystem_storage(url)
        bucket, prefix = url.removeprefix("s3://").split("/", 1)
        return icechunk.s3_storage(
            bucket=bucket,
            prefix=prefix,
            region=os.environ["AWS_REGION"],
            endpoint_url=os.environ["AWS_ENDPOINT_URL"],
            allow_http=True,
            force_path_style=True,
            access_key_id=os.environ["AWS_ACCESS_KEY_ID"],
            secret_access_key=os.environ["AWS_SECRET_ACCESS_KEY"],
        )

    def open(self, url: str, data_type: Any) -> Any:
        repository = icechunk.Repository.open(self.storage(url))
        return zarr.open_array(repository.readonly_session("main").store, mode="r")

    def ingest(self, url: str, spec: dict[str, Any], cells: np.ndarray) -> None:
        repository = icechunk.Repository.create(self.storage(url))
        session = repository.writable_session("main")
        compress = "zstd" in codec_names(spec)
        array = zarr.create_array(
            session.store,
            shape=tuple(spec["shape"]),
            chunks=tuple(spec["chunk_shape"]),
            dtype=cells.dtype,
            compressors=zarr.codecs.ZstdCodec(level=1) if compress else None,
            fill_value=spec["fill_value"],
        )
        # A row of chunks at a time keeps the memory of a write bounded.
        step = spec["chunk_shape"][0]
        for start in range(0, cells.shape[0], step):
            array[start : start + step] = cells[start : start + step]
        session.commit("the cells of the benchmark")


def make(_: str) -> Peer:
    """The one variant."""
    return Icechunk()
