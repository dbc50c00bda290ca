"""What the tests of the Python package share: a simulated cloud, and arrays in every stored form."""

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests")]

from cloud import Cloud  # noqa: E402

import hyperslab as hs  # noqa: E402


@pytest.fixture(scope="session")
def cloud():
    one = Cloud()
    yield one
    one.stop()


@pytest.fixture
def s3(cloud, monkeypatch):
    """The simulated S3 by the usual environment variables; returns a URL to put things below."""
    for name, value in cloud.env.items():
        monkeypatch.setenv(name, value)
    return "s3://data"


def stored_forms(folder, remote, cells):
    """The same cells in six stored forms: (name, array)."""
    import h5py

    sides = [max(1, (side + 2) // 3) for side in cells.shape]
    shards = [2 * side for side in sides]
    raw = {"compression": False, "chunks": sides, "overwrite": True}
    yield "raw", hs.save(f"{folder}/raw.zarr", cells, **raw)
    yield "zstd", hs.save(f"{folder}/zstd.zarr", cells, chunks=sides, overwrite=True)
    yield "sharded", hs.save(f"{folder}/sharded.zarr", cells, chunks=sides, shards=shards, overwrite=True)
    with h5py.File(f"{folder}/h.h5", "w") as file:
        how = {"chunks": tuple(sides), "compression": "gzip", "shuffle": True} if cells.size and sides else {}
        file.create_dataset("chunked", data=cells, **how)
        file.create_dataset("contiguous", data=cells)
    yield "hdf5 chunked", hs.open(f"{folder}/h.h5/chunked")
    yield "hdf5 contiguous", hs.open(f"{folder}/h.h5/contiguous")
    yield "remote", hs.save(f"{remote}/remote.zarr", cells, **raw)


def same(found, expected):
    """The same type, shape and bits."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.dtype == expected.dtype, (found.dtype, expected.dtype)
    assert found.shape == expected.shape, (found.shape, expected.shape)
    assert found.tobytes() == expected.tobytes()
