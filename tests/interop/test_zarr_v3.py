"""Zarr v3: what zarr-python and tensorstore write we read, and what we write they read, bit by bit."""

import json

import numpy as np
import pytest
import tensorstore
import zarr
from conftest import random_cells, same_bits
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, TransposeCodec, ZstdCodec

SHAPE, CHUNKS, SHARDS = (13, 17), (5, 6), (10, 12)
DTYPES = ["bool", "int8", "uint16", "int32", "int64", "uint64", "float16", "float32", "float64", "complex64", "complex128"]
FLEXIBLE = ["U3", "S5", "datetime64[ns]", "timedelta64[s]"]

# name: (what zarr-python is told, what hyperslab is told)
LAYOUTS = {
    "raw": ({"compressors": None}, ["--codec", "none"]),
    "zstd": ({"compressors": ZstdCodec(level=3)}, ["--codec", "zstd:3"]),
    "gzip": ({"compressors": GzipCodec(level=5)}, ["--codec", "gzip:5"]),
    "blosc": ({"compressors": BloscCodec(cname="lz4", shuffle="bitshuffle")}, ["--codec", "blosc:lz4:5:bitshuffle"]),
    "crc32c": ({"compressors": Crc32cCodec()}, ["--codec", "crc32c"]),
    "zstd-crc32c": ({"compressors": [ZstdCodec(), Crc32cCodec()]}, ["--codec", "zstd,crc32c"]),
    "transpose": ({"filters": TransposeCodec(order=(1, 0)), "compressors": None}, ["--codec", "none", "--order", "F"]),
    "big-endian": ({"serializer": BytesCodec(endian="big"), "compressors": None}, ["--codec", "none", "--endian", "big"]),
    "sharded": ({"shards": SHARDS, "compressors": ZstdCodec()}, ["--codec", "zstd", "--shards", "10,12"]),
    "sharded-raw": ({"shards": SHARDS, "compressors": None}, ["--codec", "none", "--shards", "10,12"]),
}
SLICES = {"[2:11, 3]": np.s_[2:11, 3], "[::3, -4:]": np.s_[::3, -4:], "[..., 5:6]": np.s_[..., 5:6], "[::-1, 1]": np.s_[::-1, 1]}


def is_possible(dtype, layout):
    """One byte has no byte order."""
    return not (layout == "big-endian" and np.dtype(dtype).itemsize == 1)


def matrix(dtypes):
    return [(dtype, layout) for dtype in dtypes for layout in LAYOUTS if is_possible(dtype, layout)]


def tensorstore_read(path):
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(path)}}
    return tensorstore.open(spec, open=True, read=True).result().read().result()


@pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning")
@pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")
class TestBothWays:
    @pytest.mark.parametrize("dtype,layout", matrix(DTYPES + FLEXIBLE))
    def test_we_read_zarr_python(self, hyperslab, tmp_path, dtype, layout):
        cells = random_cells(dtype, SHAPE)
        path = tmp_path / "x.zarr"
        array = zarr.create_array(path, shape=SHAPE, dtype=dtype, chunks=CHUNKS, **LAYOUTS[layout][0])
        array[...] = cells
        same_bits(hyperslab.get(path, tmp_path), cells)
        for text, slices in SLICES.items():
            same_bits(hyperslab.get(f"{path}{text}", tmp_path), cells[slices])

    @pytest.mark.parametrize("dtype,layout", matrix(DTYPES))
    def test_zarr_python_and_tensorstore_read_us(self, hyperslab, tmp_path, dtype, layout):
        cells = random_cells(dtype, SHAPE)
        path = tmp_path / "x.zarr"
        hyperslab.put(cells, path, tmp_path, "--chunks", "5,6", *LAYOUTS[layout][1])
        same_bits(zarr.open_array(path, mode="r")[...], cells)
        same_bits(tensorstore_read(path), cells)

    @pytest.mark.parametrize("dtype,layout", matrix(FLEXIBLE))
    def test_zarr_python_reads_our_text_and_times(self, hyperslab, tmp_path, dtype, layout):
        # tensorstore has no such types.
        cells = random_cells(dtype, SHAPE)
        path = tmp_path / "x.zarr"
        hyperslab.put(cells, path, tmp_path, "--chunks", "5,6", *LAYOUTS[layout][1])
        same_bits(zarr.open_array(path, mode="r")[...], cells)


@pytest.mark.parametrize("keys", ["default /", "default .", "v2 .", "v2 /"])
def test_others_read_what_we_rechunked_in_place(hyperslab, tmp_path, keys):
    name, separator = keys.split()
    cells = random_cells("int32", SHAPE)
    path = tmp_path / "x.zarr"
    encoding = {"name": name, "separator": separator}
    zarr.create_array(path, data=cells, chunks=CHUNKS, chunk_key_encoding=encoding)
    for chunks, more in [((13, 2), ["--shards", "none"]), ((3, 17), ["--shards", "6,17"]), ((4, 4), ["--order", "F"])]:
        hyperslab.run("rechunk", path, "--in-place", "--chunks", ",".join(map(str, chunks)), *more, "--verify")
        same_bits(zarr.open_array(path, mode="r")[...], cells)
        same_bits(tensorstore_read(path), cells)
        same_bits(hyperslab.get(path, tmp_path), cells)
        assert zarr.open_array(path, mode="r").chunks == chunks


@pytest.mark.parametrize("layout", ["raw", "zstd", "transpose", "sharded"])
def test_what_others_change_in_our_arrays_we_read(hyperslab, tmp_path, layout):
    cells = random_cells("int32", SHAPE)
    path = tmp_path / "x.zarr"
    hyperslab.put(cells, path, tmp_path, "--chunks", "5,6", *LAYOUTS[layout][1])
    zarr.open_array(path, mode="r+")[3:9, 4:8] = 7
    cells = cells.copy()
    cells[3:9, 4:8] = 7
    same_bits(hyperslab.get(path, tmp_path), cells)
    hyperslab.put(np.full((1, 17), -1, "int32"), f"{path}[12:13, :]", tmp_path)
    cells[12] = -1
    same_bits(zarr.open_array(path, mode="r")[...], cells)
    same_bits(tensorstore_read(path), cells)


def test_fill_values_agree(hyperslab, tmp_path):
    for number, (dtype, fill, text) in enumerate(
        [("float32", np.nan, "NaN"), ("float64", -np.inf, "-Infinity"), ("int16", -9999, "-9999"), ("bool", True, "true")]
    ):
        theirs, ours = tmp_path / f"theirs-{number}.zarr", tmp_path / f"ours-{number}.zarr"
        expected = np.full((4, 6), fill, dtype)
        zarr.create_array(theirs, shape=(4, 6), dtype=dtype, chunks=(2, 3), fill_value=fill)
        same_bits(hyperslab.get(theirs, tmp_path), expected)
        hyperslab.run("create", ours, "--shape", "4,6", "--dtype", dtype, "--chunks", "2,3", "--fill", text)
        same_bits(zarr.open_array(ours, mode="r")[...], expected)
        same_bits(tensorstore_read(ours), expected)


def test_scalars_and_empty_arrays(hyperslab, tmp_path):
    for number, shape in enumerate([(), (0,), (3, 0)]):
        cells = random_cells("float64", shape)
        theirs, ours = tmp_path / f"theirs-{number}.zarr", tmp_path / f"ours-{number}.zarr"
        array = zarr.create_array(theirs, shape=shape, dtype="float64", chunks=tuple(2 for _ in shape))
        array[...] = cells
        same_bits(hyperslab.get(theirs, tmp_path), cells)
        hyperslab.put(cells, ours, tmp_path)
        same_bits(zarr.open_array(ours, mode="r")[...], cells)


@pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")
def test_strings_of_any_length(hyperslab, tmp_path):
    words = np.array([["", "a", "äöü"], ["日本語", "🦀" * 50, "end"]], dtype=np.dtypes.StringDType())
    path = tmp_path / "x.zarr"
    zarr.create_array(path, data=words, chunks=(1, 2))
    assert hyperslab.get(path, tmp_path).tolist() == words.tolist()
    ours = tmp_path / "ours.zarr"
    hyperslab.run("create", ours, "--shape", "2,3", "--dtype", "string", "--chunks", "1,2")
    hyperslab.put(words.astype("U50"), ours, tmp_path)
    assert zarr.open_array(ours, mode="r")[...].tolist() == words.tolist()


@pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning")
def test_consolidated_metadata_of_zarr_python(hyperslab, tmp_path):
    path = tmp_path / "tree.zarr"
    root = zarr.create_group(path, attributes={"title": "ä"})
    cells = {}
    for name in ["a", "deep/er/b", "deep/c"]:
        cells[name] = random_cells("uint16", (6, 5), len(name))
        root.create_array(name, data=cells[name], chunks=(3, 5))
    zarr.consolidate_metadata(path)
    listed = hyperslab.run("tree", path)
    assert all(name.rsplit("/")[-1] in listed for name in cells)
    for name, expected in cells.items():
        same_bits(hyperslab.get(path / name, tmp_path), expected)
    # A change of ours keeps their copy in step.
    hyperslab.run("resize", path / "deep/c", "--shape", "9,5")
    group = zarr.open_consolidated(path)
    assert group["deep/c"].shape == (9, 5)
    assert group.attrs["title"] == "ä"
    same_bits(group["deep/er/b"][...], cells["deep/er/b"])


@pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning")
def test_consolidated_metadata_of_ours(hyperslab, tmp_path):
    path = tmp_path / "tree.zarr"
    hyperslab.run("create", "--group", path, "--attr", "title=ours")
    cells = {name: random_cells("float32", (6, 5), len(name)) for name in ["a", "deep/er/b", "deep/c"]}
    for name, expected in cells.items():
        hyperslab.put(expected, path / name, tmp_path, "--chunks", "2,5", "--attr", f'who="{name}"')
    metadata = json.loads((path / "zarr.json").read_text())["consolidated_metadata"]["metadata"]
    assert sorted(metadata) == ["a", "deep", "deep/c", "deep/er", "deep/er/b"]
    group = zarr.open_consolidated(path)
    assert group.attrs["title"] == "ours"
    for name, expected in cells.items():
        same_bits(group[name][...], expected)
        assert group[name].attrs["who"] == name
    assert sorted(name for name, _ in group.members(max_depth=None)) == sorted(metadata)
