"""Arrays and groups: types, buffers, writes, metadata, plans."""

import pickle

import h5py
import numpy as np
import pytest
import zarr
from conftest import same

import hyperslab as hs

RECORD = np.dtype([("a", "<i4"), ("b", "<f8"), ("c", "S3")])
DTYPES = [
    "?", "i1", "u2", "<i4", "u8", "f2", "f4", "f8", "c8", "c16", "S5", "U3", "V4", "M8[ns]", "m8[s]", RECORD,
]  # fmt: skip


def some_cells(dtype, shape):
    dtype = np.dtype(dtype)
    draw = np.random.default_rng(3)
    if dtype.kind == "U":
        return np.array(["", "a", "äöü", "日本"], dtype)[draw.integers(0, 4, shape)]
    if dtype.kind == "S":
        return np.array([b"", b"a", b"xyzzy"], dtype)[draw.integers(0, 3, shape)]
    if dtype.kind == "b":
        return draw.integers(0, 2, shape).astype(bool)
    if dtype.fields:
        cells = np.zeros(shape, dtype)
        for name in dtype.names:
            cells[name] = some_cells(dtype[name], shape)
        return cells
    return np.frombuffer(draw.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_types_are_numpys_there_and_back(dtype, tmp_path):
    cells = some_cells(dtype, (6, 5))
    array = hs.save(tmp_path / "a.zarr", cells, chunks=(4, 3))
    assert array.dtype == cells.dtype
    same(array[...], cells)
    same(array[2], cells[2])
    theirs = zarr.open_array(tmp_path / "a.zarr", mode="r")[...]
    assert theirs.tobytes() == cells.tobytes()
    again = pickle.loads(pickle.dumps(array))
    same(again[1:4, ::2], cells[1:4, ::2])


def test_big_endian_cells_are_stored_so_and_read_as_numbers(tmp_path):
    cells = np.arange(12, dtype=">i2").reshape(3, 4)
    array = hs.save(tmp_path / "a.zarr", cells)
    assert (array[...] == cells).all()
    assert array.codecs[0]["configuration"]["endian"] == "big" or "sharding" in array.codecs[0]["name"]
    assert (zarr.open_array(tmp_path / "a.zarr", mode="r")[...] == cells).all()


def test_texts_and_bytes_of_any_length(tmp_path):
    words = np.array([["a", "", "日本"], ["long " * 50, "x", "ü"]], dtype=object)
    array = hs.save(tmp_path / "a.zarr", words, chunks=(1, 2))
    assert array[...].tolist() == words.tolist()
    assert array[1, 0] == words[1, 0]
    assert array[[1, 0], [2, 0]].tolist() == ["ü", "a"]
    array[0] = ["b", "c", "d"]
    array[1, ::-1] = ["1", "2", "3"]
    assert array[...].tolist() == [["b", "c", "d"], ["3", "2", "1"]]
    assert zarr.open_array(tmp_path / "a.zarr", mode="r")[...].tolist() == array[...].tolist()
    raw = hs.create(tmp_path / "b.zarr", shape=3, dtype="bytes")
    raw[...] = [b"", b"\x00\xff", b"abc"]
    assert raw[...].tolist() == [b"", b"\x00\xff", b"abc"]
    array.append(np.array([["x", "y", "z"]], dtype=object))
    assert array[2].tolist() == ["x", "y", "z"]


def test_reads_land_in_given_buffers(tmp_path):
    cells = np.arange(24, dtype="<f4").reshape(4, 6)
    array = hs.save(tmp_path / "a.zarr", cells, chunks=(3, 2))
    out = np.empty((2, 6), "<f4")
    assert array.read(np.s_[1:3], out=out) is out
    same(out, cells[1:3])
    strided = np.zeros((6, 8), "<f4")
    array.read(np.s_[::2, ::-2], out=strided[::3, 1:4])
    same(strided[::3, 1:4], cells[::2, ::-2])
    assert strided[1].sum() == 0
    plain = bytearray(4 * 6)
    array.read(2, out=plain)
    same(np.frombuffer(plain, "<f4"), cells[2])
    one = np.zeros((), "<f4")
    array.read((1, 2), out=one)
    assert one == cells[1, 2]
    with pytest.raises(ValueError, match="cells of float64"):
        array.read(out=np.empty((4, 6)))
    with pytest.raises(ValueError, match="the shape"):
        array.read(out=np.empty((4, 5), "<f4"))
    frozen = np.empty((4, 6), "<f4")
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read only"):
        array.read(out=frozen)


def test_arrays_are_arrays_to_others(tmp_path):
    cells = np.arange(12).reshape(3, 4)
    array = hs.save(tmp_path / "a.zarr", cells)
    same(np.asarray(array), cells)
    same(np.asarray(array, "f4"), cells.astype("f4"))
    assert np.add(array, 1).sum() == cells.sum() + 12
    same(np.from_dlpack(array), cells)
    assert len(array) == 3 and array.ndim == 2 and array.size == 12 and array.nbytes == 96
    assert [row.tolist() for row in array] == cells.tolist()
    with pytest.raises(ValueError, match="copy"):
        np.asarray(array, copy=False)
    scalar = hs.save(tmp_path / "s.zarr", np.float32(3))
    assert scalar[()] == 3 and isinstance(scalar[...], np.ndarray)
    for wrong in (lambda: len(scalar), lambda: list(scalar)):
        with pytest.raises(TypeError):
            wrong()


def test_resize_append_and_attributes(tmp_path):
    array = hs.create(tmp_path / "g.zarr/a", shape=(2, 3), dtype="i4", fill_value=7, dimension_names=["t", "x"])
    assert array.fill_value == 7 and array.dimension_names == ("t", "x")
    assert (array[...] == 7).all()
    assert array.append(np.ones((2, 3))) == (4, 3)
    array.append([[5]] * 4, axis=1)
    assert array.shape == (4, 4) and array[3].tolist() == [1, 1, 1, 5]
    array.resize((1, 2))
    assert array[...].tolist() == [[7, 7]]
    array.attrs["unit"] = "K"
    array.attrs.update(scale=np.float32(0.5), parts=np.arange(3))
    again = hs.open(tmp_path / "g.zarr/a")
    assert dict(again.attrs) == {"unit": "K", "scale": 0.5, "parts": [0, 1, 2]}
    del again.attrs["unit"]
    assert "unit" not in hs.open(tmp_path / "g.zarr")["a"].attrs
    for wrong in [lambda: array.append(np.ones((1, 9))), lambda: array.append([1], axis=5), lambda: array.resize((-1, 2))]:
        with pytest.raises(hs.InvalidError):
            wrong()
    with pytest.raises(hs.InvalidError, match="attributes"):
        array.attrs["x"] = object()
    with pytest.raises(hs.InvalidError, match="attributes"):
        array.attrs["x"] = float("nan")


def test_one_value_is_written_piece_by_piece(tmp_path, monkeypatch):
    monkeypatch.setattr("hyperslab._array.PIECE", 1000)
    array = hs.create(tmp_path / "a.zarr", shape=(50, 30), dtype="i4", chunks=(7, 11))
    expected = np.zeros((50, 30), "i4")
    for key in [np.s_[3:48:2, 1:], np.s_[...], np.s_[:, 4], np.s_[10:40]]:
        array[key] = expected[key] = len(str(key))
    same(array[...], expected)


def test_groups_are_mappings(tmp_path):
    root = hs.create_group(tmp_path / "g.zarr", {"title": "x"})
    inner = root.create_group("inner")
    array = inner.create("deep/a", shape=4, dtype="u1", chunks=2, shards=4)
    assert array.shards == (4,) and array.chunks == (2,)
    hs.save(tmp_path / "g.zarr/b", np.arange(3))
    root = hs.open(tmp_path / "g.zarr")
    assert sorted(root) == ["b", "inner"] and len(root) == 2
    assert "inner/deep/a" in root and "nothing" not in root
    assert isinstance(root["inner"], hs.Group) and root["inner/deep/a"].shape == (4,)
    assert [path for path, _ in root.walk()] == ["b", "inner", "inner/deep", "inner/deep/a"]
    assert [name for name, _ in root.arrays()] == ["b"]
    assert pickle.loads(pickle.dumps(root)).attrs["title"] == "x"
    with pytest.raises(KeyError):
        root["nothing"]
    assert hs.remove(tmp_path / "g.zarr/inner") > 0
    assert "inner" not in hs.open(tmp_path / "g.zarr")


def test_several_selections_are_one_query(tmp_path, s3):
    cells = np.arange(10_000, dtype="<i4").reshape(100, 100)
    array = hs.save(f"{s3}/many/a.zarr", cells, chunks=(10, 10), compression=False)
    words = hs.save(tmp_path / "w.zarr", np.array(["a", "b"], dtype=object))
    keys = [np.s_[5, :], np.s_[3:9, 3:9], ([1, 50], [2, 60]), np.s_[0:0], ([1, 9, 50], [2, 70, 3], slice(None))[:2]]
    found = hs.read_many([(array, key) for key in keys] + [(words, 1)])
    for key, one in zip(keys, found, strict=False):
        same(one, cells[key])
    assert found[-1] == "b"
    cube = hs.save(tmp_path / "c.zarr", cells.reshape(10, 10, 100), chunks=(3, 3, 30))
    same(cube[[1, 5, 1], [2, 9, 7], 10:60:3], cells.reshape(10, 10, 100)[[1, 5, 1], [2, 9, 7], 10:60:3])


def test_hdf5_in_place(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["g/a"] = np.arange(20).reshape(4, 5)
        file["g/a"].attrs["unit"] = "m"
        file["words"] = ["a", "bc"]
    root = hs.open(tmp_path / "x.h5")
    assert sorted(root) == ["g", "words"]
    array = root["g/a"]
    assert array.format == "hdf5" and array.chunks is None and array.attrs["unit"] == "m"
    assert array[1:3, -1].tolist() == [9, 14]
    assert root["words"][...].tolist() == ["a", "bc"]
    with pytest.raises(hs.InvalidError, match="read only"):
        array[0] = 1


def test_plans_say_what_is_done(s3, tmp_path):
    array = hs.save(f"{s3}/plan/a.zarr", np.ones((100, 100)), chunks=(10, 10), compression=False)
    plan = array.explain(np.s_[:5])
    assert len(plan.chunks) == 10 and plan.measured is None
    assert plan.estimated["requests"] >= 1 and "paper" in plan.alternatives
    assert "global (chosen)" in repr(plan)
    assert plan._repr_html_().startswith("<div") and "<svg" in plan._repr_html_()
    plan.save_html(tmp_path / "plan.html")
    assert (tmp_path / "plan.html").read_text().startswith("<!DOCTYPE html>")
    assert array.explain(np.s_[:5], analyze=True).measured["bytes"] > 0
    with hs.options(planner="get"):
        assert hs.open(f"{s3}/plan/a.zarr").explain(np.s_[:5]).planner == "get"


def test_profiles_are_measured(s3, tmp_path):
    found = hs.profile(f"{s3}/scratch", bytes=4 << 20, seconds=2, output=tmp_path / "p.toml")
    assert found["profile"]["network"]["latency_seconds"] > 0
    assert (tmp_path / "p.toml").exists()


def test_closed_handles_say_so(tmp_path):
    with hs.save(tmp_path / "a.zarr", np.zeros(3)) as array:
        pass
    with pytest.raises(ValueError, match="closed"):
        array[0]
    assert "closed" in repr(array)
