"""HDF5 files that h5py writes, read in place: cells compared bit for bit with what h5py reads."""

import json

import h5py
import hdf5plugin
import numpy as np
import pytest
import zarr

from conftest import random_cells, same_bits

TYPES = [
    "?", "i1", "<i2", ">i2", "<i4", ">i4", "<i8", ">i8", "u1", "<u2", ">u4", "<u8",
    "<f2", ">f2", "<f4", ">f4", "<f8", ">f8", "<c8", ">c8", "<c16", "S1", "S7", "V5",
    [("a", "<i4"), ("b", ">f8"), ("c", "S3")],
]
LIBVERS = ["earliest", "v108", "v110", "latest"]
# Name: (maximal shape, chunks) of an array of (23, 17).
INDEXES = {
    "contiguous": (None, None),
    "single": (None, (23, 17)),
    "fixed": (None, (5, 4)),
    "extensible": ((None, 17), (5, 4)),
    "tree": ((None, None), (5, 4)),
    "larger": ((40, 30), (5, 4)),
}
FILTERS = {
    "deflate": dict(compression="gzip", compression_opts=4),
    "shuffle": dict(shuffle=True, compression="gzip"),
    "fletcher": dict(fletcher32=True),
    "lzf": dict(compression="lzf", shuffle=True),
    "scale": dict(scaleoffset=0),
    "blosc": dict(hdf5plugin.Blosc(cname="zstd", shuffle=hdf5plugin.Blosc.BITSHUFFLE)),
    "zstd": dict(hdf5plugin.Zstd()),
    "lz4": dict(hdf5plugin.LZ4(nbytes=256)),
    "bitshuffle": dict(hdf5plugin.Bitshuffle(cname="none")),
    "bitshuffle-lz4": dict(hdf5plugin.Bitshuffle(cname="lz4")),
    "bitshuffle-zstd": dict(hdf5plugin.Bitshuffle(cname="zstd")),
    "all": dict(shuffle=True, compression="gzip", fletcher32=True),
}
SHAPE = (23, 17)


def check(hyperslab, tmp_path, file, name, seed=0):
    """All cells, and some boxes."""
    with h5py.File(file) as opened:
        expected = opened[name][()]
    same_bits(hyperslab.get(f"{file}/{name}", tmp_path), expected)
    rng = np.random.default_rng(seed)
    for _ in range(3):
        box = [sorted(rng.integers(0, side + 1, 2)) for side in expected.shape]
        if any(start == stop for start, stop in box):
            continue
        text = ",".join(f"{start}:{stop}" for start, stop in box)
        slices = tuple(slice(start, stop) for start, stop in box)
        same_bits(hyperslab.get(f"{file}/{name}[{text}]", tmp_path), expected[slices])


def test_elements_with_parts_of_any_length_are_texts_in_json(hyperslab, tmp_path):
    """No cell of ours has room for them, and they are as attributes are."""
    kind = np.dtype([("name", h5py.string_dtype()), ("n", ">i4"), ("v", h5py.vlen_dtype(np.dtype("<f4")))])
    file = tmp_path / "records.h5"
    with h5py.File(file, "w") as opened:
        for name, options in (("whole", {}), ("chunked", dict(chunks=(2,), compression="gzip"))):
            data = opened.create_dataset(name, (6,), kind, **options)
            for i in (0, 1, 5):
                data[i] = (f"näme {i}", -i, np.arange(i) / 3)
        words = opened.create_dataset("words", (3, 2), h5py.vlen_dtype(h5py.string_dtype()), chunks=(1, 2))
        words[1, 1] = np.array(["", "a", "bc"], dtype=object)
    thirds = (np.arange(5, dtype="<f4") / np.float32(3)).astype("f8").tolist()
    filled = {"name": "", "n": 0, "v": []}
    expected = [
        {"name": "näme 0", "n": 0, "v": []}, {"name": "näme 1", "n": -1, "v": [0.0]},
        filled, filled, filled, {"name": "näme 5", "n": -5, "v": thirds},
    ]
    for name in ("whole", "chunked"):
        found = [json.loads(cell) for cell in hyperslab.get(f"{file}/{name}", tmp_path)]
        assert found == expected
        found = [json.loads(cell) for cell in hyperslab.get(f"{file}/{name}[1:6:2]", tmp_path)]
        assert found == expected[1:6:2]
    found = [[json.loads(cell) for cell in row] for row in hyperslab.get(f"{file}/words", tmp_path)]
    assert found == [[[], []], [[], ["", "a", "bc"]], [[], []]]
    # Copied, they are texts that any Zarr tool reads; and back, what they were.
    hyperslab.run("cp", file, tmp_path / "copy.zarr")
    texts = zarr.open_array(tmp_path / "copy.zarr" / "chunked", mode="r")[...].tolist()
    assert [json.loads(text) for text in texts] == expected
    hyperslab.run("cp", tmp_path / "copy.zarr", tmp_path / "back.h5")
    with h5py.File(file) as before, h5py.File(tmp_path / "back.h5") as after:
        for name in ("whole", "chunked", "words"):
            assert after[name].dtype == before[name].dtype
            assert repr(after[name][...].tolist()) == repr(before[name][...].tolist())


def test_fill_values_of_any_length(hyperslab, tmp_path):
    file = tmp_path / "filled.h5"
    with h5py.File(file, "w") as opened:
        data = opened.create_dataset("a", (7,), h5py.string_dtype(), chunks=(2,), fillvalue="nobody")
        data[3] = "somebody"
        opened.create_dataset("untouched", (3,), h5py.string_dtype(), fillvalue="nobody")
    expected = ["nobody", "nobody", "nobody", "somebody", "nobody", "nobody", "nobody"]
    assert hyperslab.get(f"{file}/a", tmp_path).tolist() == expected
    assert hyperslab.get(f"{file}/untouched", tmp_path).tolist() == ["nobody"] * 3
    hyperslab.run("cp", file, tmp_path / "copy.zarr")
    copy = zarr.open_array(tmp_path / "copy.zarr" / "a", mode="r")
    assert copy[...].tolist() == expected and copy.fill_value == "nobody"


@pytest.mark.parametrize("libver", LIBVERS)
def test_types_and_versions(hyperslab, tmp_path, libver):
    file = tmp_path / "types.h5"
    with h5py.File(file, "w", libver=libver) as opened:
        for i, dtype in enumerate(TYPES):
            cells = random_cells(dtype, SHAPE, i)
            opened.create_dataset(f"plain/{i}", data=cells)
            opened.create_dataset(f"chunked/{i}", data=cells, chunks=(6, 5), compression="gzip")
    for i in range(len(TYPES)):
        check(hyperslab, tmp_path, file, f"plain/{i}", i)
        check(hyperslab, tmp_path, file, f"chunked/{i}", i)


@pytest.mark.parametrize("libver", LIBVERS)
@pytest.mark.parametrize("index", INDEXES)
def test_indexes(hyperslab, tmp_path, libver, index):
    file = tmp_path / "index.h5"
    limits, chunks = INDEXES[index]
    cells = random_cells("<i4", SHAPE, 1)
    with h5py.File(file, "w", libver=libver) as opened:
        plain = opened.create_dataset("plain", SHAPE, "<i4", maxshape=limits, chunks=chunks)
        plain[...] = cells
        if chunks:
            packed = opened.create_dataset(
                "packed", SHAPE, "<i4", maxshape=limits, chunks=chunks, compression="gzip", shuffle=True
            )
            packed[...] = cells
            sparse = opened.create_dataset(
                "sparse", SHAPE, "<i4", maxshape=limits, chunks=chunks, fillvalue=-7
            )
            sparse[3:9, 2:13] = cells[3:9, 2:13]
    for name in ("plain", "packed", "sparse")[: 3 if chunks else 1]:
        check(hyperslab, tmp_path, file, name)


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("dtype", ["<i4", ">i2", "<u8"])
def test_filters(hyperslab, tmp_path, name, dtype):
    file = tmp_path / "filter.h5"
    cells = (np.arange(23 * 17).reshape(SHAPE) % 57).astype(dtype)
    with h5py.File(file, "w") as opened:
        opened.create_dataset("a", data=cells, chunks=(8, 9), **FILTERS[name])
    check(hyperslab, tmp_path, file, "a")


def test_many_chunks(hyperslab, tmp_path):
    """Enough chunks for trees of several levels and arrays of several blocks."""
    file = tmp_path / "many.h5"
    cells = np.arange(6000, dtype="<i4").reshape(60, 100)
    for libver in ("earliest", "latest"):
        for number, limits in enumerate([None, (None, 100), (None, None)]):
            with h5py.File(file, "w", libver=libver) as opened:
                opened.create_dataset("a", data=cells, chunks=(1, 2), maxshape=limits)
                opened.create_dataset(
                    "b", data=cells, chunks=(1, 2), maxshape=limits, compression="gzip"
                )
            check(hyperslab, tmp_path, file, "a", number)
            check(hyperslab, tmp_path, file, "b", number)


def test_groups_links_and_attributes(hyperslab, tmp_path):
    for libver in LIBVERS:
        file = tmp_path / f"groups-{libver}.h5"
        with h5py.File(file, "w", libver=libver, track_order=libver == "latest") as opened:
            opened["g/a"] = np.arange(5)
            opened["g/soft"] = h5py.SoftLink("/g/a")
            opened["g/near"] = h5py.SoftLink("a")
            opened["hard"] = opened["g/a"]
            opened["dangling"] = h5py.SoftLink("/nowhere")
            opened["loop"] = opened["/"]
            for i in range(100):
                opened.create_group(f"many/group {i:03}")
            attributes = opened["g/a"].attrs
            attributes["text"] = "äö"
            attributes["number"] = np.float32(0.5)
            attributes["list"] = np.arange(6).reshape(2, 3)
            attributes["yes"] = True
            attributes["texts"] = ["a", "bc"]
            for i in range(20):
                opened["hard"].attrs[f"many {i}"] = i
        for name in ("g/a", "g/soft", "g/near", "hard"):
            same_bits(hyperslab.get(f"{file}/{name}", tmp_path), np.arange(5))
        info = json.loads(hyperslab.run("info", f"{file}/hard", "--json"))
        found = info["attributes"]
        assert found["text"] == "äö" and found["number"] == 0.5 and found["yes"] is True
        assert found["list"] == [[0, 1, 2], [3, 4, 5]] and found["texts"] == ["a", "bc"]
        assert [found[f"many {i}"] for i in range(20)] == list(range(20))
        names = hyperslab.run("ls", f"{file}/many").split("\n")
        assert sum("group" in name for name in names) == 100
        assert "near" in hyperslab.run("tree", file)


def test_user_blocks_and_scalars(hyperslab, tmp_path):
    file = tmp_path / "user.h5"
    with h5py.File(file, "w", userblock_size=2048) as opened:
        opened["a"] = np.arange(1000)
        opened["scalar"] = np.float64(2.5)
        opened.create_dataset("compact", data=np.arange(7, dtype=">u2"))
        opened.create_dataset("filled", (4, 5), "<f4", fillvalue=np.nan)
        opened["pairs"] = np.zeros((3, 2), dtype=np.dtype(("<i4", (2, 3))))
    with open(file, "r+b") as raw:
        raw.write(b"x" * 2048)
    for name in ("a", "scalar", "compact", "filled"):
        check(hyperslab, tmp_path, file, name)


def test_damage_is_an_error(hyperslab, tmp_path):
    file = tmp_path / "whole.h5"
    with h5py.File(file, "w", libver="latest") as opened:
        opened.create_dataset("a", data=np.arange(1000), chunks=(10,), compression="gzip")
    whole = file.read_bytes()
    cut = tmp_path / "cut.h5"
    cut.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(AssertionError, match="truncated"):
        hyperslab.get(f"{cut}/a", tmp_path)
    cut.write_bytes(b"no HDF5 at all" * 100)
    with pytest.raises(AssertionError, match="not an HDF5 file"):
        hyperslab.get(f"{cut}/a", tmp_path)
    with pytest.raises(AssertionError, match="no \"b\""):
        hyperslab.get(f"{file}/b", tmp_path)
    with pytest.raises(AssertionError, match="read only"):
        hyperslab.put(np.arange(1000), f"{file}/a", tmp_path)


def test_numbers_that_no_processor_has(hyperslab, tmp_path):
    """Brain floats, floats of one byte and integers of three, as libhdf5 itself converts them."""
    brain = h5py.h5t.IEEE_F32LE.copy()
    brain.set_fields(15, 7, 8, 0, 7)
    brain.set_size(2)
    brain.set_ebias(127)
    tiny = h5py.h5t.IEEE_F32BE.copy()
    tiny.set_fields(7, 3, 4, 0, 3)
    tiny.set_size(1)
    tiny.set_ebias(7)
    three = h5py.h5t.STD_I32BE.copy()
    three.set_precision(24)
    three.set_size(3)
    cases = {
        "brain": (brain, h5py.h5t.NATIVE_FLOAT, np.float32([0, -0.0, 1.5, -3e38, 1e-40, np.inf, -np.inf, 9e-41])),
        "tiny": (tiny, h5py.h5t.NATIVE_FLOAT, np.float32([0, -0.0, 1.5, -208, 0.015625, 0.001953125, 96, -1])),
        "three": (three, h5py.h5t.NATIVE_INT32, np.int32([0, 1, -1, 2**23 - 1, -(2**23), 7, 8, -99])),
    }
    file = tmp_path / "odd.h5"
    with h5py.File(file, "w") as opened:
        for name, (stored, memory, cells) in cases.items():
            cells = np.resize(cells, (30, 20))
            for layout in ("plain", "chunked"):
                how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                if layout == "chunked":
                    how.set_chunk((7, 9))
                    how.set_shuffle()
                    how.set_deflate(4)
                how.set_fill_value(np.array(5, cells.dtype))
                space = h5py.h5s.create_simple(cells.shape)
                made = h5py.h5d.create(opened.id, f"{name}_{layout}".encode(), stored, space, how)
                made.write(h5py.h5s.ALL, h5py.h5s.ALL, cells, memory)
            space = h5py.h5s.create_simple((8,))
            made = h5py.h5a.create(opened.id, name.encode(), stored, space)
            made.write(np.ascontiguousarray(cells[0, :8]), memory)
    attributes = json.loads(hyperslab.run("info", file, "--json"))["attributes"]
    with h5py.File(file) as opened:
        for name, (_, memory, cells) in cases.items():
            for layout in ("plain", "chunked"):
                expected = np.empty((30, 20), cells.dtype)
                opened[f"{name}_{layout}"].id.read(h5py.h5s.ALL, h5py.h5s.ALL, expected, memory)
                url = f"{file}/{name}_{layout}"
                same_bits(hyperslab.get(url, tmp_path), expected)
                same_bits(hyperslab.get(f"{url}[3:29:2,5:17]", tmp_path), expected[3:29:2, 5:17])
            finite = [n for n in attributes[name] if not isinstance(n, str)]
            assert finite == [n for n in expected[0, :8].tolist() if np.isfinite(n)]
    hyperslab.run("cp", file, tmp_path / "copy.h5.zarr")
    hyperslab.run("cp", tmp_path / "copy.h5.zarr", tmp_path / "back.h5")
    with h5py.File(file) as opened, h5py.File(tmp_path / "back.h5") as back:
        for name in opened:
            assert back[name].id.get_type() == opened[name].id.get_type()
            expected, found = np.empty((30, 20), "f8"), np.empty((30, 20), "f8")
            for one, cells in ((opened, expected), (back, found)):
                one[name].id.read(h5py.h5s.ALL, h5py.h5s.ALL, cells, h5py.h5t.NATIVE_DOUBLE)
            same_bits(found, expected)
