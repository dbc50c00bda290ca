"""Rechunking from Python; zarr-python reads what it makes."""

import h5py
import numpy as np
import pytest
import zarr
from conftest import same

import hyperslab as hs

CELLS = np.random.default_rng(5).integers(0, 99, (40, 24, 30)).astype("f4")


@pytest.mark.parametrize(
    "layout",
    [
        {"chunks": (40, 5, 7)},
        {"chunks": (20, 4, 5), "shards": (40, 8, 10), "codec": "gzip"},
        {"order": (2, 0, 1), "codec": "zstd:9"},
        {"codec": False},
    ],
    ids=str,
)
def test_layouts(layout, tmp_path):
    days = hs.save(tmp_path / "days.zarr", CELLS, chunks=(1, 24, 30), attributes={"unit": "K"})
    made = hs.rechunk(days, tmp_path / "made.zarr", verify=True, memory="64MiB", **layout)
    same(made[...], CELLS)
    assert made.attrs["unit"] == "K"
    assert made.chunks == layout.get("chunks", (1, 24, 30))
    same(zarr.open_array(tmp_path / "made.zarr", mode="r")[...], CELLS)
    assert not (tmp_path / "made.zarr" / ".hyperslab").exists()


def test_in_place(tmp_path):
    group = hs.create_group(tmp_path / "g.zarr")
    hs.save(tmp_path / "g.zarr" / "days", CELLS, chunks=(1, 24, 30))
    for chunks in [(40, 5, 7), (7, 24, 30), (40, 1, 30)]:
        made = hs.rechunk(tmp_path / "g.zarr" / "days", in_place=True, chunks=chunks)
        assert made.chunks == chunks
        same(made[...], CELLS)
        theirs = zarr.open_group(tmp_path / "g.zarr", mode="r")["days"]
        same(theirs[...], CELLS)
        assert theirs.chunks == chunks
        same(hs.open(tmp_path / "g.zarr")["days"][...], CELLS)
    assert group is not None


def test_from_hdf5_and_zarr_v2(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=CELLS, chunks=(3, 24, 30), compression="gzip")
    same(hs.rechunk(tmp_path / "a.h5" / "x", tmp_path / "b.zarr", chunks=(40, 5, 5))[...], CELLS)
    zarr.save_array(tmp_path / "v2.zarr", CELLS, zarr_format=2)
    made = hs.rechunk(tmp_path / "v2.zarr", tmp_path / "c.zarr", chunks=(40, 5, 5), verify=True)
    same(made[...], CELLS)


def test_texts(tmp_path):
    words = np.array([[f"{y} {x}" * (x % 4) for x in range(20)] for y in range(30)], dtype=object)
    rows = hs.save(tmp_path / "rows.zarr", words, chunks=(1, 20))
    made = hs.rechunk(rows, tmp_path / "columns.zarr", chunks=(30, 3), verify=True)
    assert made[...].tolist() == words.tolist()


def test_mistakes(tmp_path):
    days = hs.save(tmp_path / "days.zarr", CELLS, chunks=(1, 24, 30))
    with pytest.raises(hs.InvalidError, match="either"):
        hs.rechunk(days, chunks=(40, 5, 5))
    with pytest.raises(hs.InvalidError, match="memory"):
        hs.rechunk(days, tmp_path / "b.zarr", chunks=(40, 24, 30), memory=10_000)
    with pytest.raises(hs.InvalidError, match="within each other"):
        hs.rechunk(days, tmp_path / "days.zarr" / "b", chunks=(40, 5, 5))
    hs.rechunk(days, tmp_path / "b.zarr", chunks=(40, 5, 5))
    with pytest.raises(hs.ConflictError):
        hs.rechunk(days, tmp_path / "b.zarr", chunks=(40, 5, 5))
