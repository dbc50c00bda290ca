"""What people read HDF5 files with: h5py, netCDF4 and PyTables on disk; h5py over s3fs, and
zarr-python over references that kerchunk or VirtualiZarr made, in the cloud.

A URL is that of a file with the path of a dataset behind it.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from . import Peer

ENDING = ".h5/"


def split(url: str) -> tuple[str, str]:
    """(the file, the dataset in it)."""
    file, dataset = url.split(ENDING, 1)
    return file + ENDING[:-1], dataset


class Files(Peer):
    """Peers that keep files open."""

    packages: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.files: dict[str, Any] = {}

    def versions(self) -> dict[str, str]:
        return {name: importlib.metadata.version(name) for name in self.packages}

    def file(self, path: str) -> Any:
        if path not in self.files:
            self.files[path] = self.open_file(path)
        return self.files[path]

    def open_file(self, path: str) -> Any:
        raise NotImplementedError

    def read(self, array: Any) -> Any:
        return array[...]


class H5py(Files):
    """h5py with the filters of hdf5plugin."""

    packages = ("h5py", "hdf5plugin")

    def __init__(self) -> None:
        super().__init__()
        import h5py
        import hdf5plugin  # noqa: F401

        self.h5py = h5py

    def open_file(self, path: str) -> Any:
        return self.h5py.File(path)

    def open(self, url: str, data_type: Any) -> Any:
        path, dataset = split(url)
        return self.file(path)[dataset]

    def ingest(self, url: str, spec: dict[str, Any], cells: np.ndarray) -> None:
        path, dataset = split(url)
        write_dataset(self.h5py, path, dataset, spec, cells)

    def read(self, array: Any) -> Any:
        # Straight into its result: the fastest way it has.
        out = np.empty(array.shape, array.dtype)
        array.read_direct(out)
        return out

    def walk(self, url: str) -> int:
        found = []
        self.files.pop(url, None)
        file = self.file(url)

        def look(name: str, node: Any) -> None:
            if isinstance(node, self.h5py.Dataset):
                found.append((name, node.shape, node.dtype))

        file.visititems(look)
        return len(found)


class H5pyS3fs(H5py):
    """h5py over s3fs, with blocks and a page buffer as its users are told to set them."""

    packages = ("h5py", "s3fs", "fsspec")

    def __init__(self) -> None:
        super().__init__()
        import s3fs

        self.fs = s3fs.S3FileSystem(
            key=os.environ["AWS_ACCESS_KEY_ID"],
            secret=os.environ["AWS_SECRET_ACCESS_KEY"],
            endpoint_url=os.environ["AWS_ENDPOINT_URL"],
        )

    def open_file(self, path: str) -> Any:
        self.fs.invalidate_cache()
        block = int(os.environ.get("HSBENCH_BLOCK", 1 << 20))
        raw = self.fs.open(path, "rb", block_size=block, cache_type="blockcache")
        return self.h5py.File(raw, "r", rdcc_nbytes=16 << 20)


    def ingest(self, url: str, spec: dict[str, Any], cells: np.ndarray) -> None:
        """Written on local disk, and uploaded: that is how such files come into the cloud."""
        path, dataset = split(url)
        with tempfile.NamedTemporaryFile(suffix=".h5") as local:
            write_dataset(self.h5py, local.name, dataset, spec, cells)
            self.fs.put_file(local.name, path)


class Connector(H5py):
    """h5py as it is, on files in the cloud, by the connector that the environment names."""

    def __init__(self) -> None:
        Files.__init__(self)
        import h5py

        self.h5py = h5py

    packages = ("h5py",)

    def ingest(self, url: str, spec: dict[str, Any], cells: np.ndarray) -> None:
        path, dataset = split(url)
        write_dataset(self.h5py, path, dataset, spec, cells)

    def open(self, url: str, data_type: Any) -> Any:
        # A new open each time: the connector keeps no cells, and its files none either.
        path, dataset = split(url)
        self.files.pop(path, None)
        return self.file(path)[dataset]


def write_dataset(h5py: Any, path: str, name: str, spec: dict[str, Any], cells: np.ndarray) -> None:
    """Writes a dataset by slabs of whole chunks, as a program would that has not all of it in memory."""
    chunks = tuple(spec["chunk_shape"])
    packed = any(codec["name"] == "zstd" for codec in spec["codecs"])
    with h5py.File(path, "w") as file:
        data = file.create_dataset(
            name, cells.shape, cells.dtype, chunks=chunks, compression="gzip" if packed else None
        )
        for start in range(0, cells.shape[0], chunks[0]):
            data[start : start + chunks[0]] = cells[start : start + chunks[0]]


class NetCdf(Files):
    """netCDF4."""

    packages = ("netCDF4",)

    def open_file(self, path: str) -> Any:
        import netCDF4

        return netCDF4.Dataset(path)

    def open(self, url: str, data_type: Any) -> Any:
        path, dataset = split(url)
        variable = self.file(path)[dataset]
        variable.set_auto_maskandscale(False)
        return variable


class PyTables(Files):
    """PyTables, with as many Blosc threads as there are cores."""

    packages = ("tables",)

    def open_file(self, path: str) -> Any:
        import tables

        tables.set_blosc_max_threads(os.cpu_count() or 1)
        return tables.open_file(path)

    def open(self, url: str, data_type: Any) -> Any:
        path, dataset = split(url)
        return self.file(path).get_node("/" + dataset)


class References(Files):
    """zarr-python over references to ranges of the file, made beforehand."""

    def __init__(self, maker: str):
        super().__init__()
        self.maker = maker
        self.packages = ("zarr", "fsspec", "s3fs", maker)

    def open_file(self, path: str) -> Any:
        import zarr
        from fsspec.implementations.reference import ReferenceFileSystem
        from zarr.storage import FsspecStore

        fs = ReferenceFileSystem(
            str(self.references()),
            remote_protocol="s3",
            remote_options=dict(
                key=os.environ["AWS_ACCESS_KEY_ID"],
                secret=os.environ["AWS_SECRET_ACCESS_KEY"],
                endpoint_url=os.environ["AWS_ENDPOINT_URL"],
                asynchronous=True,
            ),
            asynchronous=True,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return zarr.open_group(FsspecStore(fs, read_only=True), mode="r", zarr_format=2)

    def open(self, url: str, data_type: Any) -> Any:
        path, dataset = split(url)
        return self.file(path)[dataset]

    def walk(self, url: str) -> int:
        self.files.pop(url, None)
        group = self.file(url)
        # The names are in the references; listing the store finds none of them.
        references = json.loads(self.references().read_text())["refs"]
        names = [key.removesuffix("/.zarray") for key in references if key.endswith("/.zarray")]
        return len([group[name].shape for name in names])

    def references(self) -> Path:
        return Path(os.environ["HSBENCH_REFERENCES"]) / f"{self.maker}.json"


def make(name: str) -> Peer:
    """The peer of this name."""
    match name:
        case "h5py":
            return H5py()
        case "h5py+s3fs":
            return H5pyS3fs()
        case "h5py+connector":
            return Connector()
        case "netCDF4":
            return NetCdf()
        case "PyTables":
            return PyTables()
        case "kerchunk" | "virtualizarr":
            return References(name)
    raise ValueError(f"nothing reads HDF5 by the name {name!r}")
