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
}


class Peer(ABC):
    """What a peer can do. Caches are off; what `read` returns is the peer's own fresh result.

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

    @abstractmethod
    def create(self, url: str, spec: dict[str, Any]) -> Any:
        """Creates an array of Zarr v3."""

    @abstractmethod
    def create_v2(self, url: str, spec: dict[str, Any]) -> Any:
        """Creates an array of Zarr v2: shape, chunks, dtype, compressor, filters, order,
        fill_value and dimension_separator, as its `.zarray` has them."""

    @abstractmethod
    def read(self, array: Any) -> Any:
        """Reads all cells. Timed."""

    @abstractmethod
    def write(self, array: Any, where: tuple[slice, ...], cells: np.ndarray) -> None:
        """Writes cells. Timed."""

    def result(self, cells: Any, data_type: Any) -> np.ndarray:
        """What `read` returned, as an array with one element per cell."""
        return np.asarray(cells)
