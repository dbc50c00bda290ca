"""Zarr v2, which is read only: what zarr-python writes we read."""

import json
import subprocess

import numcodecs
import numpy as np
import pytest
import zarr
from conftest import random_cells, same_bits

SHAPE, CHUNKS = (13, 17), (5, 6)
COMPRESSORS = {
    "raw": None,
    "zlib": numcodecs.Zlib(level=5),
    "gzip": numcodecs.GZip(level=5),
    "zstd": numcodecs.Zstd(level=3),
    "lz4": numcodecs.LZ4(),
    "blosc": numcodecs.Blosc(cname="zstd", clevel=5, shuffle=numcodecs.Blosc.SHUFFLE),
    "blosc-bits": numcodecs.Blosc(cname="lz4", clevel=5, shuffle=numcodecs.Blosc.BITSHUFFLE),
}
STRUCTURED = [("id", "<i4"), ("name", "S3"), ("at", [("x", "<f8"), ("y", "<f2")])]


def write(path, cells, **settings):
    settings.setdefault("compressors", None)
    array = zarr.create_array(path, shape=cells.shape, dtype=cells.dtype, chunks=CHUNKS, zarr_format=2, **settings)
    array[...] = cells
    return array


@pytest.mark.parametrize("compressor", COMPRESSORS)
@pytest.mark.parametrize("dtype", ["bool", "int8", "<u2", ">i4", "<f4", ">f8", "<c8", "<U3", "S5", "<M8[ns]"])
def test_compressors(hyperslab, tmp_path, dtype, compressor):
    cells = random_cells(dtype, SHAPE)
    path = tmp_path / "x.zarr"
    write(path, cells, compressors=COMPRESSORS[compressor])
    same_bits(hyperslab.get(path, tmp_path), cells)
    same_bits(hyperslab.get(f"{path}[2:11, ::3]", tmp_path), cells[2:11, ::3])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("separator", [".", "/"])
def test_orders_and_separators(hyperslab, tmp_path, order, separator):
    cells = random_cells("<i4", SHAPE)
    path = tmp_path / "x.zarr"
    keys = {"name": "v2", "separator": separator}
    write(path, cells, order=order, chunk_key_encoding=keys, compressors=numcodecs.Zlib())
    metadata = json.loads((path / ".zarray").read_text())
    assert (metadata["order"], metadata["dimension_separator"]) == (order, separator)
    same_bits(hyperslab.get(path, tmp_path), cells)


@pytest.mark.parametrize("compressor", ["raw", "zlib", "blosc"])
def test_structured(hyperslab, tmp_path, compressor):
    cells = random_cells(STRUCTURED, SHAPE)
    path = tmp_path / "x.zarr"
    write(path, cells, compressors=COMPRESSORS[compressor])
    same_bits(hyperslab.get(path, tmp_path), cells)


def test_filters(hyperslab, tmp_path):
    cells = random_cells("<i4", SHAPE)
    path = tmp_path / "x.zarr"
    write(path, cells, filters=[numcodecs.Shuffle(elementsize=4)], compressors=numcodecs.Zlib())
    same_bits(hyperslab.get(path, tmp_path), cells)


def test_strings_of_any_length(hyperslab, tmp_path):
    words = np.array([["", "a", "äöü"], ["日本語", "🦀" * 50, "end"]], dtype=np.dtypes.StringDType())
    path = tmp_path / "x.zarr"
    array = zarr.create_array(path, shape=(2, 3), dtype=str, chunks=(1, 2), zarr_format=2)
    array[...] = words
    assert hyperslab.get(path, tmp_path).tolist() == words.tolist()


@pytest.mark.parametrize("fill", [0, 7, None])
def test_absent_chunks(hyperslab, tmp_path, fill):
    path = tmp_path / "x.zarr"
    zarr.create_array(path, shape=(4, 6), dtype="<i2", chunks=(2, 3), zarr_format=2, fill_value=fill)
    same_bits(hyperslab.get(path, tmp_path), np.full((4, 6), fill or 0, "<i2"))


def test_groups_attributes_and_copies(hyperslab, tmp_path):
    path = tmp_path / "tree.zarr"
    root = zarr.create_group(path, zarr_format=2, attributes={"title": "old"})
    cells = random_cells("<f4", (6, 5))
    array = root.create_array("deep/a", data=cells, chunks=(3, 5))
    array.attrs["units"] = "K"
    zarr.consolidate_metadata(path, zarr_format=2)
    assert "deep" in hyperslab.run("tree", path)
    assert json.loads(hyperslab.run("info", "--json", path / "deep/a"))["attributes"] == {"units": "K"}
    same_bits(hyperslab.get(path / "deep/a", tmp_path), cells)
    copy = tmp_path / "copy.zarr"
    hyperslab.run("cp", path / "deep/a", copy)
    assert zarr.open_array(copy, mode="r").metadata.zarr_format == 3
    same_bits(zarr.open_array(copy, mode="r")[...], cells)


def test_writing_is_refused(hyperslab, tmp_path):
    path = tmp_path / "x.zarr"
    cells = random_cells("<i4", SHAPE)
    write(path, cells)
    np.save(tmp_path / "zero.npy", np.zeros(SHAPE, "<i4"))
    done = subprocess.run([hyperslab.program, "put", tmp_path / "zero.npy", path], capture_output=True, text=True)
    assert done.returncode == 2 and "read only" in done.stderr, done.stderr
    same_bits(zarr.open_array(path, mode="r")[...], cells)
