"""TileDB-Py, with as many requests in flight as the others and without its caches.

An array is one dense fragment whose tiles are the chunks, with the filters of the spec.
"""

from __future__ import annotations

import importlib.metadata
import os
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import tiledb

from . import Peer, codec_names


def context() -> tiledb.Ctx:
    """Requests in flight are bounded by both the S3 client and the I/O threads, whose default is
    the number of cores."""
    settings = {
        "sm.io_concurrency_level": "64",
        "vfs.s3.max_parallel_ops": "64",
        "vfs.read_ahead_cache_size": "0",
        # Its default of 20 MB also reads the tiles between those of a column.
        "vfs.min_batch_size": str(1 << 20),
    }
    if "AWS_ENDPOINT_URL" in os.environ:
        endpoint = urlsplit(os.environ["AWS_ENDPOINT_URL"])
        settings |= {
            "vfs.s3.scheme": endpoint.scheme,
            "vfs.s3.endpoint_override": endpoint.netloc,
            "vfs.s3.region": os.environ["AWS_REGION"],
            "vfs.s3.use_virtual_addressing": "false",
            "vfs.s3.aws_access_key_id": os.environ["AWS_ACCESS_KEY_ID"],
            "vfs.s3.aws_secret_access_key": os.environ["AWS_SECRET_ACCESS_KEY"],
        }
    return tiledb.Ctx(settings)


class TileDB(Peer):
    """Dense arrays of one attribute."""

    def __init__(self) -> None:
        self.context = context()

    def versions(self) -> dict[str, str]:
        core = ".".join(map(str, tiledb.libtiledb.version()))
        return {"tiledb": importlib.metadata.version("tiledb"), "libtiledb": core}

    def open(self, url: str, data_type: Any) -> Any:
        return tiledb.open(url, ctx=self.context)

    def ingest(self, url: str, spec: dict[str, Any], cells: np.ndarray) -> None:
        dimensions = [
            tiledb.Dim(
                name=f"d{axis}",
                domain=(0, side - 1),
                tile=min(side, chunk),
                dtype=np.uint64,
                ctx=self.context,
            )
            for axis, (side, chunk) in enumerate(zip(spec["shape"], spec["chunk_shape"]))
        ]
        compress = "zstd" in codec_names(spec)
        filters = [tiledb.ZstdFilter(level=1)] if compress else []
        attribute = tiledb.Attr(
            dtype=cells.dtype, filters=tiledb.FilterList(filters), ctx=self.context
        )
        schema = tiledb.ArraySchema(
            domain=tiledb.Domain(*dimensions, ctx=self.context),
            attrs=[attribute],
            sparse=False,
            ctx=self.context,
        )
        tiledb.Array.create(url, schema, ctx=self.context)
        with tiledb.open(url, "w", ctx=self.context) as array:
            array[...] = np.ascontiguousarray(cells)


def make(_: str) -> Peer:
    """The one variant."""
    return TileDB()
