"""HDF5 beyond one file: virtual datasets, links, external cells, reference files; and bad input."""

import base64
import json
import re
import struct

import h5py
import hdf5plugin
import numcodecs
import numpy as np
import pytest
import zarr
from fsspec.implementations.reference import LazyReferenceMapper

from conftest import same_bits

UNLIMITED = h5py.h5s.UNLIMITED


def source(file, cells, **options):
    with h5py.File(file, "w") as opened:
        opened.create_dataset("data", data=cells, **options)


def mapped(file, name, shape, dtype, parts, **options):
    """A virtual dataset of (place, file, dataset, shape of the source, selection of it)."""
    layout = h5py.VirtualLayout(shape, dtype, **options)
    for place, other, dataset, whole, selected in parts:
        layout[place] = h5py.VirtualSource(str(other), dataset, shape=whole)[selected]
    with h5py.File(file, "a", libver="latest") as opened:
        opened.create_virtual_dataset(name, layout, fillvalue=-3)


def check(hyperslab, tmp_path, file, name, *boxes):
    with h5py.File(file) as opened:
        expected = opened[name][()]
    same_bits(hyperslab.get(f"{file}/{name}", tmp_path), expected)
    for box in boxes:
        text = ",".join(f"{s.start}:{s.stop}:{s.step or 1}" for s in box)
        same_bits(hyperslab.get(f"{file}/{name}[{text}]", tmp_path), expected[box])


def test_virtual_datasets(hyperslab, tmp_path):
    everything = np.s_[:, :]
    for i in range(3):
        source(tmp_path / f"s{i}.h5", np.arange(60, dtype="<i4").reshape(10, 6) + 100 * i, chunks=(3, 4))
    file = tmp_path / "virtual.h5"
    stack = [(i, f"s{i}.h5", "data", (10, 6), everything) for i in range(3)]
    mapped(file, "stack", (3, 10, 6), "<i4", stack)
    rows = [(np.s_[i::3], f"s{i}.h5", "data", (10, 6), everything) for i in range(3)]
    mapped(file, "rows", (30, 6), "<i4", rows)
    pieces = [
        (np.s_[:4, :3], "s0.h5", "data", (10, 6), np.s_[2:10:2, 1:4]),
        (np.s_[4:, 5:], "s1.h5", "data", (10, 6), np.s_[:4, ::2]),
        (np.s_[6:8, 0:2], "gone.h5", "data", (10, 6), np.s_[:2, :2]),
    ]
    mapped(file, "pieces", (8, 8), "<i4", pieces)
    mapped(file, "wider", (3, 10, 6), "<f8", stack)
    mapped(file, "again", (3, 60), "<i4", [(np.s_[:, :], ".", "stack", (3, 10, 6), np.s_[:, :, :])])
    boxes = [np.s_[0:2, 3:9, 1:5], np.s_[1:3, 0:10:3, 0:6:2]]
    check(hyperslab, tmp_path, file, "stack", *boxes)
    check(hyperslab, tmp_path, file, "wider", *boxes)
    check(hyperslab, tmp_path, file, "rows", np.s_[4:17, 2:6], np.s_[1:30:4, 0:6])
    check(hyperslab, tmp_path, file, "pieces", np.s_[1:7, 1:8], np.s_[0:8:3, 0:8:5])
    check(hyperslab, tmp_path, file, "again", np.s_[0:3, 7:44:3])


def test_virtual_datasets_without_limit(hyperslab, tmp_path):
    grown = tmp_path / "grown.h5"
    source(grown, np.arange(60, dtype="<i4").reshape(10, 6), chunks=(3, 6), maxshape=(None, 6))
    file = tmp_path / "virtual.h5"
    layout = h5py.VirtualLayout((10, 6), "<i4", maxshape=(None, 6))
    whole = h5py.VirtualSource(grown.name, "data", shape=(10, 6), maxshape=(None, 6))
    layout[:UNLIMITED, :] = whole[:UNLIMITED, :]
    with h5py.File(file, "w", libver="latest") as opened:
        opened.create_virtual_dataset("grown", layout)
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        space = h5py.h5s.create_simple((4, 6), (UNLIMITED, 6))
        space.select_hyperslab((0, 0), (UNLIMITED, 1), (4, 1), (4, 6))
        properties.set_virtual(space, b"block-%b.h5", b"data", h5py.h5s.create_simple((4, 6)))
        shape = h5py.h5s.create_simple((4, 6), (UNLIMITED, 6))
        h5py.h5d.create(opened.id, b"numbered", h5py.h5t.STD_I32LE, shape, properties)
    for i in range(4):
        source(tmp_path / f"block-{i}.h5", np.arange(24, dtype="<i4").reshape(4, 6) + 100 * i)
    with h5py.File(grown, "a") as opened:
        opened["data"].resize((17, 6))
        opened["data"][10:] = 5
    check(hyperslab, tmp_path, file, "grown", np.s_[8:15, 1:3])
    check(hyperslab, tmp_path, file, "numbered", np.s_[2:13:2, 1:3])


def test_links_and_cells_in_other_files(hyperslab, tmp_path):
    cells = np.arange(600, dtype=">f4").reshape(20, 30)
    source(tmp_path / "other.h5", cells)
    (tmp_path / "whole.raw").write_bytes(b"header" + cells.tobytes())
    (tmp_path / "first.raw").write_bytes(cells.tobytes()[:1000])
    (tmp_path / "second.raw").write_bytes(cells.tobytes()[1000:])
    file = tmp_path / "main.h5"
    with h5py.File(file, "w") as opened:
        opened["link"] = h5py.ExternalLink("other.h5", "/data")
        opened["lost"] = h5py.ExternalLink("nowhere.h5", "/data")
        whole = [(str(tmp_path / "whole.raw"), 6, 2400)]
        opened.create_dataset("whole", (20, 30), ">f4", external=whole)
        parts = [(str(tmp_path / "first.raw"), 0, 1000), (str(tmp_path / "second.raw"), 0, 1400)]
        opened.create_dataset("parts", (20, 30), ">f4", external=parts)
        # Behind the end of a file are zeros, whatever the fill value.
        short = [(str(tmp_path / "first.raw"), 40, 2000), (str(tmp_path / "second.raw"), 1000, 400)]
        opened.create_dataset("short", (20, 30), ">f4", external=short, fillvalue=7)
    for name in ("link", "whole", "parts", "short"):
        check(hyperslab, tmp_path, file, name, np.s_[3:9, 4:28:5])
    assert "link" in hyperslab.run("ls", file)
    with pytest.raises(AssertionError, match="nowhere.h5"):
        hyperslab.get(f"{file}/lost", tmp_path)


def test_dimension_names(hyperslab, tmp_path):
    file = tmp_path / "scales.h5"
    with h5py.File(file, "w") as opened:
        opened["lat"], opened["lon"] = np.arange(5.0), np.arange(7.0)
        opened["lat"].make_scale()
        opened["lon"].make_scale("longitude")
        opened["inner/t"] = np.zeros((5, 7))
        opened["inner/t"].dims[0].attach_scale(opened["lat"])
        opened["inner/t"].dims[1].attach_scale(opened["lon"])
    info = json.loads(hyperslab.run("info", f"{file}/inner/t", "--json"))
    assert info["dimension_names"] == ["lat", "lon"]
    assert "DIMENSION_LIST" not in info["attributes"]
    info = json.loads(hyperslab.run("info", f"{file}/lat", "--json"))
    assert info["dimension_names"] == ["lat"]


def test_references_there_and_back(hyperslab, tmp_path):
    """zarr-python reads what we write, and so do we."""
    file = tmp_path / "cells.h5"
    cells = np.arange(1200, dtype=">i4").reshape(30, 40)
    with h5py.File(file, "w") as opened:
        opened.attrs["title"] = "x"
        opened["g/plain"] = cells
        opened.create_dataset("g/packed", data=cells, chunks=(7, 9), compression="gzip", shuffle=True)
        opened.create_dataset("g/summed", data=cells, chunks=(7, 9), fletcher32=True)
        opened.create_dataset("zstd", data=cells, chunks=(7, 9), **hdf5plugin.Zstd())
        opened.create_dataset("sparse", (30, 40), "<f8", chunks=(7, 9), fillvalue=np.nan)[3:9] = 1.5
        opened.create_dataset("lzf", data=cells, chunks=(7, 9), compression="lzf")
        opened["scalar"] = 7.5
    references = tmp_path / "refs.json"
    done = json.loads(hyperslab.run("refs", file, "-o", references, "--json"))
    assert [one["path"] for one in done["left_out"]] == ["lzf"]
    options = {"fo": str(references), "remote_protocol": "file"}
    group = zarr.open_group("reference://", mode="r", storage_options=options, zarr_format=2)
    assert group.attrs["title"] == "x"
    for name in ("g/plain", "g/packed", "g/summed", "zstd", "sparse", "scalar"):
        with h5py.File(file) as opened:
            expected = opened[name][()]
        same_bits(group[name][()], expected)
        same_bits(hyperslab.get(f"{references}/{name}", tmp_path), expected)
    same_bits(hyperslab.get(f"{references}/g/packed[3:20,5:39:3]", tmp_path), cells[3:20, 5:39:3])


def test_values_in_reference_files(hyperslab, tmp_path):
    raw = tmp_path / "raw.bin"
    raw.write_bytes(np.arange(100, dtype="<i2").tobytes())
    meta = {"zarr_format": 2, "shape": [12], "chunks": [4], "dtype": "<i2", "fill_value": 9,
            "order": "C", "filters": None, "compressor": None}
    refs = {
        ".zgroup": {"zarr_format": 2},
        "a/.zarray": json.dumps(meta),
        "a/0": ["{{u}}", 20, 8],
        "a/2": "base64:AQACAAMABAA=",
    }
    file = tmp_path / "refs.json"
    file.write_text(json.dumps({"version": 1, "templates": {"u": "raw.bin"}, "refs": refs}))
    expected = np.array([10, 11, 12, 13, 9, 9, 9, 9, 1, 2, 3, 4], "<i2")
    same_bits(hyperslab.get(f"{file}/a", tmp_path), expected)
    file.write_text("{}")
    with pytest.raises(AssertionError, match="no metadata"):
        hyperslab.get(f"{file}/a", tmp_path)


def test_strings_in_reference_files(hyperslab, tmp_path):
    """As kerchunk embeds them."""
    words = np.array(["", "a", "äöü", "日本語", "end"], dtype=object)
    packed = numcodecs.VLenUTF8()
    meta = {"zarr_format": 2, "shape": [7], "chunks": [5], "dtype": "|O", "fill_value": "-",
            "order": "C", "filters": [{"id": "vlen-utf8"}], "compressor": None}
    embedded = "base64:" + base64.b64encode(packed.encode(words)).decode()
    refs = {".zgroup": {"zarr_format": 2}, "a/.zarray": meta, "a/0": embedded}
    file = tmp_path / "refs.json"
    file.write_text(json.dumps({"version": 1, "refs": refs}))
    assert hyperslab.get(f"{file}/a", tmp_path).tolist() == [*words, "-", "-"]


def test_references_in_parquet(hyperslab, tmp_path):
    """Tables that fsspec writes, with fewer rows than there are chunks."""
    file = tmp_path / "cells.h5"
    cells = np.arange(1200, dtype="<i4").reshape(30, 40)
    with h5py.File(file, "w") as opened:
        opened.create_dataset("g/packed", data=cells, chunks=(7, 9), compression="gzip", shuffle=True)
        opened.create_dataset("sparse", (30, 40), "<f8", chunks=(7, 9), fillvalue=np.nan)[3:9] = 1.5
        opened["scalar"] = 7.5
    hyperslab.run("refs", file, "-o", tmp_path / "refs.json")
    references = json.loads((tmp_path / "refs.json").read_text())["refs"]
    folder = tmp_path / "refs.parq"
    tables = LazyReferenceMapper.create(str(folder), record_size=6)
    # Metadata first: the tables are as large as the arrays in it.
    for key, value in sorted(references.items(), key=lambda item: "/.z" not in item[0]):
        tables[key] = value if isinstance(value, str) else [str(file), *value[1:]]
    # One chunk has its bytes in the table.
    tables["sparse/0.0"] = np.full((7, 9), 2.5, "<f8").tobytes()
    tables.flush()
    assert len(list(folder.glob("g/packed/refs.*.parq"))) > 1
    with h5py.File(file) as opened:
        expected = {name: opened[name][()] for name in ("g/packed", "sparse", "scalar")}
    expected["sparse"][:7, :9] = 2.5
    for name, cells in expected.items():
        same_bits(hyperslab.get(f"{folder}/{name}", tmp_path), cells)
    same_bits(hyperslab.get(f"{folder}/g/packed[3:20,5:39:3]", tmp_path), expected["g/packed"][3:20, 5:39:3])
    table = next(folder.glob("g/packed/refs.1.parq"))
    table.write_bytes(table.read_bytes()[:-9])
    assert "damaged" in fails(hyperslab, tmp_path, f"{folder}/g/packed")


def fails(hyperslab, tmp_path, url):
    """What the program says; it must end by itself, with one sentence."""
    with pytest.raises(AssertionError) as reason:
        hyperslab.get(url, tmp_path)
    text = str(reason.value)
    assert "error: " in text and "panicked" not in text and "internal error" not in text, text
    return text


def test_every_cut_of_a_file_is_an_error(hyperslab, tmp_path):
    file = tmp_path / "whole.h5"
    with h5py.File(file, "w") as opened:
        opened.create_dataset("g/a", data=np.arange(4000), chunks=(100,), compression="gzip")
        opened["g/a"].attrs["x"] = "y"
    whole = file.read_bytes()
    cut = tmp_path / "cut.h5"
    for length in (0, 1, 7, 8, 40, 96, 500, len(whole) // 2, len(whole) - 1):
        cut.write_bytes(whole[:length])
        fails(hyperslab, tmp_path, f"{cut}/g/a")


def test_trees_and_links_that_lead_in_a_circle(hyperslab, tmp_path):
    file = tmp_path / "circle.h5"
    with h5py.File(file, "w") as opened:
        opened["one"] = h5py.SoftLink("/two")
        opened["two"] = h5py.SoftLink("/one")
        opened.create_dataset("a", data=np.arange(4000, dtype="<i4"), chunks=(10,))
    assert "circle" in fails(hyperslab, tmp_path, f"{file}/one")
    raw = bytearray(file.read_bytes())
    # The root of the chunk tree becomes a child of itself.
    at = raw.index(b"TREE\x01\x01")
    first_child = at + 24 + 4 + 4 + 2 * 8
    raw[first_child : first_child + 8] = struct.pack("<Q", at)
    file.write_bytes(raw)
    fails(hyperslab, tmp_path, f"{file}/a")


def test_raw_chunks_of_another_size_are_an_error(hyperslab, tmp_path):
    """Never the bytes that happen to lie behind them."""
    file = tmp_path / "sizes.h5"
    with h5py.File(file, "w") as opened:
        opened.create_dataset("a", data=np.arange(100, dtype="<i4"), chunks=(50,))
    raw = bytearray(file.read_bytes())
    at = raw.index(b"TREE\x01\x00") + 24
    assert raw[at : at + 4] == struct.pack("<I", 200)
    raw[at : at + 4] = struct.pack("<I", 100)
    file.write_bytes(raw)
    fails(hyperslab, tmp_path, f"{file}/a")
    (tmp_path / "raw.bin").write_bytes(bytes(1000))
    meta = {"zarr_format": 2, "shape": [8], "chunks": [4], "dtype": "<i4", "fill_value": 0,
            "order": "C", "filters": None, "compressor": None}
    refs = {".zgroup": {"zarr_format": 2}, "a/.zarray": meta, "a/0": ["raw.bin", 0, 12]}
    references = tmp_path / "refs.json"
    references.write_text(json.dumps({"version": 1, "refs": refs}))
    fails(hyperslab, tmp_path, f"{references}/a")


def test_elements_of_an_absurd_size_are_an_error(hyperslab, tmp_path):
    """A finding of the fuzzer: more memory was asked for than there is."""
    file = tmp_path / "absurd.h5"
    with h5py.File(file, "w") as opened:
        opened.create_dataset("data", data=np.zeros((23, 17), "V7"), chunks=(23, 17), compression="gzip")
    content = file.read_bytes()
    place = re.search(rb"\x15.\x00\x00\x07\x00\x00\x00", content, re.DOTALL).start() + 4
    for size in (2**28 + 1, 0xEE000004, 2**32 - 1):
        file.write_bytes(content[:place] + struct.pack("<I", size) + content[place + 4 :])
        assert "an element has" in fails(hyperslab, tmp_path, f"{file}/data")


def test_filters_that_are_not_known_or_lie(hyperslab, tmp_path):
    file = tmp_path / "filters.h5"
    with h5py.File(file, "w") as opened:
        opened.create_dataset("a", data=np.zeros(1000), chunks=(100,), **hdf5plugin.BZip2())
        bomb = opened.create_dataset("bomb", (100,), "i1", chunks=(100,), compression="gzip")
        import zlib

        bomb.id.write_direct_chunk((0,), zlib.compress(bytes(50_000_000)))
    assert "BZIP2" in fails(hyperslab, tmp_path, f"{file}/a")
    fails(hyperslab, tmp_path, f"{file}/bomb")


def test_sources_that_are_missing_can_be_an_error(hyperslab, tmp_path):
    file = tmp_path / "virtual.h5"
    mapped(file, "a", (4,), "<i4", [(np.s_[:2], "gone.h5", "data", (2,), np.s_[:])])
    same_bits(hyperslab.get(f"{file}/a", tmp_path), np.full(4, -3, "<i4"))
    with pytest.raises(AssertionError, match="gone.h5"):
        hyperslab.run("get", f"{file}/a", "--strict-sources")
