"""A Parquet table with index columns, read by predicates on them, as PushDownDB keeps arrays.

S3 Select, which PushDownDB pushes its predicates to, is closed to new customers; here pyarrow
prunes row groups by their statistics and filters the rest. To its favour a row group holds the
cells of one chunk, and index columns are compressed, as they are nothing but repetition.
"""

from __future__ import annotations

import importlib.metadata
import itertools
import os
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from . import Peer

VALUE = "value"


def column(axis: int) -> str:
    """The name of an index column."""
    return f"d{axis}"


class Parquet(Peer):
    """One file per row of chunks, one row group per chunk."""

    def __init__(self) -> None:
        pa.set_io_thread_count(64)

    def versions(self) -> dict[str, str]:
        return {"pyarrow": importlib.metadata.version("pyarrow")}

    def place(self, url: str) -> tuple[Any, str]:
        if not url.startswith("s3://"):
            return pafs.LocalFileSystem(), url
        endpoint = urlsplit(os.environ["AWS_ENDPOINT_URL"])
        store = pafs.S3FileSystem(
            access_key=os.environ["AWS_ACCESS_KEY_ID"],
            secret_key=os.environ["AWS_SECRET_ACCESS_KEY"],
            region=os.environ["AWS_REGION"],
            scheme=endpoint.scheme,
            endpoint_override=endpoint.netloc,
        )
        return store, url.removeprefix("s3://")

    def open(self, url: str, data_type: Any) -> Any:
        store, path = self.place(url)
        options = pads.ParquetFragmentScanOptions(pre_buffer=True)
        form = pads.ParquetFileFormat(default_fragment_scan_options=options)
        dataset = pads.dataset(path, filesystem=store, format=form)
        # Footers are read once, as the others read their metadata when they open.
        for fragment in dataset.get_fragments():
            fragment.ensure_complete_metadata()
        return dataset

    def query(self, array: Any, where: tuple[slice, ...]) -> Any:
        terms = (
            (pads.field(column(axis)) >= side.start) & (pads.field(column(axis)) < side.stop)
            for axis, side in enumerate(where)
        )
        wanted = next(terms)
        for term in terms:
            wanted &= term
        table = array.to_table(filter=wanted)
        cells = table[VALUE].to_numpy()
        out = np.empty([side.stop - side.start for side in where], cells.dtype)
        places = tuple(
            table[column(axis)].to_numpy() - side.start for axis, side in enumerate(where)
        )
        out[places] = cells
        return out

    def ingest(self, url: str, spec: dict[str, Any], cells: np.ndarray) -> None:
        store, path = self.place(url)
        store.create_dir(path, recursive=True)
        axes = range(cells.ndim)
        schema = pa.schema(
            [(column(axis), pa.int32()) for axis in axes]
            + [(VALUE, pa.from_numpy_dtype(cells.dtype))]
        )
        grid = [range(0, side, step) for side, step in zip(spec["shape"], spec["chunk_shape"])]
        for number, first in enumerate(grid[0]):
            with pq.ParquetWriter(
                f"{path}/part-{number:05}.parquet",
                schema,
                filesystem=store,
                use_dictionary=[column(axis) for axis in axes],
                compression={column(axis): "zstd" for axis in axes} | {VALUE: "none"},
            ) as writer:
                for start in itertools.product([first], *grid[1:]):
                    table = self.chunk(schema, start, spec["chunk_shape"], cells)
                    writer.write_table(table, row_group_size=table.num_rows)

    @staticmethod
    def chunk(schema: Any, start: tuple[int, ...], sides: list[int], cells: np.ndarray) -> Any:
        """The rows of one chunk."""
        part = cells[tuple(slice(a, a + side) for a, side in zip(start, sides))]
        shape = part.shape
        columns = [
            np.broadcast_to(
                np.arange(a, a + shape[axis], dtype=np.int32).reshape(
                    [-1 if other == axis else 1 for other in range(part.ndim)]
                ),
                shape,
            ).reshape(-1)
            for axis, a in enumerate(start)
        ]
        return pa.table([*columns, np.ascontiguousarray(part).reshape(-1)], schema=schema)


def make(_: str) -> Peer:
    """The one variant."""
    return Parquet()
