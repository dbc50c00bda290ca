"""HDF5 and netCDF-4 files that are written from Zarr hierarchies which never were such files."""

import json
import subprocess
import sys

import h5py
import numpy as np
import pytest
import zarr

from conftest import random_cells, same_bits

TYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128", "S5", "U3",
    "datetime64[ms]", "timedelta64[10s]",
]


NETCDF = """
import json, sys
import netCDF4, numpy
with netCDF4.Dataset(sys.argv[1] + "/climate.nc") as file:
    found = file["model/t"]
    found.set_auto_mask(False)
    numpy.save(sys.argv[1] + "/netcdf.npy", found[:])
    print(json.dumps({
        "dimensions": found.dimensions,
        "units": found.units,
        "lengths": {name: len(dim) for name, dim in file["model"].dimensions.items()},
        "variables": sorted(file["model"].variables),
        "lat": file["lat"].dimensions,
    }))
"""


def test_types(hyperslab, tmp_path):
    root = zarr.open_group(tmp_path / "types.zarr", mode="w")
    expected = {}
    for i, name in enumerate(TYPES):
        key = name.replace("[", "_").replace("]", "")
        expected[key] = random_cells(name, (7, 5), i)
        root.create_array(key, data=expected[key], chunks=(4, 3))
    record = np.dtype([("a", "<i4"), ("b", "<f8"), ("c", "S3")])
    expected["record"] = random_cells(record, (6,), 99)
    root.create_array("record", data=expected["record"], chunks=(4,))
    hyperslab.run("cp", tmp_path / "types.zarr", tmp_path / "types.h5", "--verify")
    with h5py.File(tmp_path / "types.h5") as file:
        assert set(file) == set(expected)
        for name, cells in expected.items():
            same_bits(file[name][()], cells)
            assert file[name].dtype.newbyteorder("<") == cells.dtype.newbyteorder("<"), name


def test_texts_and_bytes(hyperslab, tmp_path):
    root = zarr.open_group(tmp_path / "texts.zarr", mode="w")
    texts = np.array(["", "a", "日本", "x" * 3000, "ü", "end"], dtype=object).reshape(3, 2)
    array = root.create_array("texts", shape=(3, 2), chunks=(2, 2), dtype=str, fill_value="none")
    array[:] = texts
    blobs = np.array([b"", b"a\0b", b"xyz" * 500], dtype=object)
    root.create_array("blobs", shape=(3,), chunks=(2,), dtype=zarr.dtype.VariableLengthBytes())[:] = blobs
    root.create_array("absent", shape=(4,), chunks=(2,), dtype=str, fill_value="none")
    hyperslab.run("cp", tmp_path / "texts.zarr", tmp_path / "texts.h5", "--verify")
    with h5py.File(tmp_path / "texts.h5") as file:
        assert file["texts"].asstr()[()].tolist() == texts.tolist()
        assert file["absent"].asstr()[()].tolist() == ["none"] * 4
        assert [cell.tobytes() for cell in file["blobs"][()]] == blobs.tolist()
        assert h5py.check_string_dtype(file["texts"].dtype).encoding == "utf-8"
    array[0, 0] = "zero\0inside"
    with pytest.raises(AssertionError, match="zero byte"):
        hyperslab.run("cp", tmp_path / "texts.zarr", tmp_path / "again.h5")
    assert not (tmp_path / "again.h5").exists()


def test_groups_attributes_and_layout(hyperslab, tmp_path):
    root = zarr.open_group(tmp_path / "deep.zarr", mode="w", attributes={"title": "Überblick"})
    inner = root.create_group("a").create_group("b", attributes={"empty": None, "list": [1, 2, 3]})
    attributes = {
        "one": 1, "half": 0.5, "yes": True, "flags": [True, False], "grid": [[1, 2], [3, 4]],
        "mixed": [1, "a"], "nested": {"deep": [1, {"er": None}]}, "words": ["a", "ö"],
        "large": 2**63 + 1, "none": [],
    }
    compressed = inner.create_array(
        "compressed", shape=(100, 80), chunks=(30, 40), dtype="f4", fill_value=-1.5,
        attributes=attributes, compressors=zarr.codecs.ZstdCodec(level=3),
    )
    compressed[:50] = random_cells("f4", (50, 80))
    inner.create_array("raw", data=np.arange(24.0).reshape(4, 6), chunks=(4, 6), compressors=None)
    inner.create_array(
        "sharded", data=np.arange(240, dtype="i2"), chunks=(10,), shards=(80,),
        compressors=zarr.codecs.GzipCodec(level=7),
    )
    root.create_array("scalar", data=np.array(3.25))
    root.create_array("nothing", shape=(0, 5), chunks=(2, 2), dtype="i4")
    hyperslab.run("cp", tmp_path / "deep.zarr", tmp_path / "deep.hdf5", "--verify")
    with h5py.File(tmp_path / "deep.hdf5") as file:
        assert file.attrs["title"] == "Überblick"
        assert isinstance(file["a/b"].attrs["empty"], h5py.Empty)
        assert file["a/b"].attrs["list"].tolist() == [1, 2, 3]
        found = file["a/b/compressed"]
        same_bits(found[()], compressed[:])
        assert (found.chunks, found.compression, found.shuffle) == ((30, 40), "gzip", True)
        assert found.fillvalue == -1.5
        said = dict(found.attrs)
        assert (said["one"], said["half"], said["large"]) == (1, 0.5, 2**63 + 1)
        assert said["yes"].dtype == bool and said["flags"].tolist() == [True, False]
        assert said["grid"].tolist() == [[1, 2], [3, 4]]
        assert said["words"].tolist() == ["a", "ö"] and said["none"].shape == (0,)
        assert json.loads(said["mixed"]) == [1, "a"]
        assert json.loads(said["nested"]) == attributes["nested"]
        assert file["a/b/raw"].chunks is None and file["a/b/raw"].compression is None
        sharded = file["a/b/sharded"]
        assert (sharded.chunks, sharded.compression_opts) == ((10,), 7)
        assert file["scalar"][()] == 3.25 and file["nothing"].shape == (0, 5)
    # One array, other chunks, and back to Zarr.
    hyperslab.run("cp", f"{tmp_path}/deep.zarr/a/b/compressed", tmp_path / "one.h5", "--chunks", "50,80")
    with h5py.File(tmp_path / "one.h5") as file:
        assert file["compressed"].chunks == (50, 80)
        same_bits(file["compressed"][()], compressed[:])
    hyperslab.run("cp", tmp_path / "deep.hdf5", tmp_path / "back.zarr")
    back = zarr.open_group(tmp_path / "back.zarr", mode="r")
    same_bits(back["a/b/compressed"][:], compressed[:])
    assert back["a/b/compressed"].attrs["grid"] == [[1, 2], [3, 4]]
    with pytest.raises(AssertionError, match="only the chunks"):
        hyperslab.run("cp", tmp_path / "deep.zarr", tmp_path / "no.h5", "--codec", "zstd")


def test_dimensions(hyperslab, tmp_path):
    root = zarr.open_group(tmp_path / "climate.zarr", mode="w")
    root.create_array("lat", data=np.linspace(-90, 90, 5), dimension_names=["lat"])
    below = root.create_group("model")
    cells = random_cells("f8", (3, 5, 4), 1)
    names = ["time", "lat", "lon"]
    below.create_array("t", data=cells, dimension_names=names, attributes={"units": "K"})
    below.create_array("other", data=np.arange(3), dimension_names=["time"])
    hyperslab.run("cp", tmp_path / "climate.zarr", tmp_path / "climate.h5", "--verify")
    with h5py.File(tmp_path / "climate.h5") as file:
        found = file["model/t"]
        assert [dim.label for dim in found.dims] == names
        assert [len(dim) for dim in found.dims] == [0, 1, 0]
        assert found.dims[1][0] == file["lat"]
    shown = json.loads(hyperslab.run("info", f"{tmp_path}/climate.h5/model/t", "--json"))
    assert shown["dimension_names"] == names
    hyperslab.run("cp", tmp_path / "climate.zarr", tmp_path / "climate.nc", "--verify")
    # In a process of its own: netCDF4 brings a libhdf5 and plug-ins that disturb those of h5py.
    done = subprocess.run([sys.executable, "-c", NETCDF, tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["dimensions"] == names and found["units"] == "K"
    assert found["lengths"] == {"time": 3, "lon": 4}
    assert found["variables"] == ["other", "t"] and found["lat"] == ["lat"]
    same_bits(np.load(tmp_path / "netcdf.npy"), cells)


def test_many_small_chunks_become_shards(hyperslab, tmp_path):
    """Chunks of a file are no objects; as objects they would be too many."""
    cells = random_cells("i2", (160, 160), 5)
    with h5py.File(tmp_path / "small.h5", "w") as file:
        file.create_dataset("small", data=cells, chunks=(1, 2))
        file.create_dataset("large", data=cells, chunks=(80, 80))
    hyperslab.run("cp", tmp_path / "small.h5", tmp_path / "small.zarr", "--verify")
    root = zarr.open_group(tmp_path / "small.zarr", mode="r")
    assert root["small"].chunks == (1, 2) and root["small"].shards is not None
    assert root["large"].chunks == (80, 80) and root["large"].shards is None
    same_bits(root["small"][:], cells)
