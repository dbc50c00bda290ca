"""The peers: one file each, with the same small interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

MODULES = {
    "tensorstore": "hsbench.peers.tensorstore_",
    "zarr-python": "hsbench.peers.zarr_python",
    "zarr-python-64": "hsbench.peers.zarr_python",
    "zarr+zarrs": "hsbench.peers.zarr_python",
    "zarr+zarrs-64": "hsbench.peers.zarr_python",
    "icechunk": "hsbench.peers.icechunk_",
    "tiledb": "hsbench.peers.tiledb_",
    "hsds": "hsbench.peers.hsds_",
    "parquet": "hsbench.peers.parquet",
    "h5py": "hsbench.peers.hdf5_",
    "h5py+s3fs": "hsbench.peers.hdf5_",
    "h5py+connector": "hsbench.peers.hdf5_",
    "netCDF4": "hsbench.peers.hdf5_",
    "PyTables": "hsbench.peers.hdf5_",
    "kerchunk": "hsbench.peers.hdf5_",
    "virtualizarr": "hsbench.peers.hdf5_",
    "hyperslab-py": "hsbench.peers.hyperslab_py",
    "hyperslab-py-cached": "hsbench.peers.hyperslab_py",
}

# What a peer needs in the environment of its process before anything is imported.
ENVIRONMENT = {
    # zarrs ties its concurrency to its threads, and those to the cores.
    "zarr+zarrs-64": {"RAYON_NUM_THREADS": "64"},
    "hyperslab-py-cached": {"HSBENCH_OPTIONS": "cache=256MiB;cache_fresh=1h"},
}

# Interpreters, below bench/, of peers whose packages do not go together with the others.
OWN_PYTHON = {"hsds": ".venv-hsds/bin/python"}

Where = tuple[slice, ...]


class Peer(ABC):
    """What a peer can do. Caches are off; what `read` and `query` return is the peer's own fresh
    result.

    A URL is a path, or `s3://bucket/path`, whose endpoint and keys are in AWS's usual environment
    variables. A spec holds the parts of Zarr v3 metadata: shape, chunk_shape, data_type,
    fill_value and codecs.
    """

    @abstractmethod
    def versions(self) -> dict[str, str]:
        """Names and versions of the packages that do the work."""

    @abstractmethod
    def open(self, url: str, data_type: Any) -> Any:
        """Opens an array."""

    def query(self, array: Any, where: Where) -> Any:
        """Reads a box. Timed."""
        return array[where]

    def ingest(self, url: str, spec: dict[str, Any], cells: np.ndarray) -> None:
        """Writes an array in the peer's own format; those that read Zarr read what we wrote."""
        raise NotImplementedError("this peer has no format of its own")

    def create(self, url: str, spec: dict[str, Any]) -> Any:
        """Creates an array of Zarr v3."""
        raise NotImplementedError("this peer writes no Zarr")

    def create_v2(self, url: str, spec: dict[str, Any]) -> Any:
        """Creates an array of Zarr v2: shape, chunks, dtype, compressor, filters, order,
        fill_value and dimension_separator, as its `.zarray` has them."""
        raise NotImplementedError("this peer writes no Zarr v2")

    def read(self, array: Any) -> Any:
        """Reads all cells. Timed."""
        raise NotImplementedError("this peer is only asked for boxes")

    def write(self, array: Any, where: Where, cells: np.ndarray) -> None:
        """Writes cells. Timed."""
        raise NotImplementedError("this peer is only asked for boxes")

    def walk(self, url: str) -> int:
        """Opens a file and looks at every dataset; returns how many there are. Timed."""
        raise NotImplementedError("this peer is not asked for a hierarchy")

    def result(self, cells: Any, data_type: Any) -> np.ndarray:
        """What `read` returned, as an array with one element per cell."""
        return np.asarray(cells)

    def close(self) -> None:
        """Ends what the peer started."""


def codec_names(spec: dict[str, Any]) -> list[str]:
    """The codecs of a spec, which say whether it is compressed or sharded."""
    return [codec["name"] for codec in spec["codecs"]]
