"""The backend for xarray, beside its own engines."""

import netCDF4  # noqa: F401  (before h5py, as netCDF4 asks for)
import numpy as np
import pytest
import xarray as xr

import hyperslab as hs


def dataset():
    time = np.arange("2000-01-01", "2000-01-09", dtype="datetime64[D]").astype("datetime64[ns]")
    temperature = np.random.default_rng(1).normal(280, 10, (8, 6, 5)).astype("f4")
    temperature[0, 0, 0] = np.nan
    return xr.Dataset(
        {
            "temperature": (("time", "y", "x"), temperature, {"units": "K"}),
            "count": (("y", "x"), np.arange(30.0).reshape(6, 5)),
            "name": (("x",), np.array(["a", "b", "c", "d", "e"])),
        },
        {"time": time, "x": np.linspace(0, 1, 5), "y": np.arange(6)},
        {"title": "a test"},
    )


def written(folder, kind):
    """A dataset as a file, and what opens it natively."""
    data = dataset()
    encoding = {"count": {"_FillValue": -9, "scale_factor": 0.5, "dtype": "i2"}}
    if kind == "netcdf":
        data.to_netcdf(folder / "d.nc", encoding=encoding | {"temperature": {"chunksizes": (2, 3, 5)}})
        return folder / "d.nc", "netcdf4"
    version = 3 if kind == "zarr3" else 2
    encoding["temperature"] = {"chunks": (2, 3, 5)}
    data.to_zarr(folder / "d.zarr", zarr_format=version, encoding=encoding, consolidated=version == 3)
    return folder / "d.zarr", "zarr"


@pytest.mark.parametrize("kind", ["netcdf", "zarr3", "zarr2"])
@pytest.mark.parametrize("scale", [True, False])
def test_datasets_are_those_of_other_engines(kind, scale, tmp_path):
    path, engine = written(tmp_path, kind)
    expected = xr.open_dataset(path, engine=engine, mask_and_scale=scale)
    found = xr.open_dataset(path, engine="hyperslab", mask_and_scale=scale)
    xr.testing.assert_equal(found.load(), expected.load())
    for name in expected.variables:
        assert found[name].dims == expected[name].dims
        # Texts of any length are objects here, and as long as the longest with netCDF4.
        texts = {found[name].dtype.kind, expected[name].dtype.kind} == {"O", "U"}
        assert texts or found[name].dtype == expected[name].dtype, name
    assert found.attrs == expected.attrs
    assert found["temperature"].attrs["units"] == "K"


def test_nothing_is_read_before_it_is_used(s3, tmp_path):
    path, _ = written(tmp_path, "zarr3")
    source = hs.open(path)
    for name, array in source.arrays():
        hs.save(
            f"{s3}/lazy/d.zarr/{name}", array[...], chunks=array.chunks,
            attributes=dict(array.attrs), dimension_names=array.dimension_names, shards=(),
        )  # fmt: skip
    found = xr.open_dataset(f"{s3}/lazy/d.zarr", engine="hyperslab")
    session = hs.open(f"{s3}/lazy/d.zarr")._live.session
    before = session.meter()[1]
    part = found["temperature"][2:4, ::2, 1]
    assert session.meter()[1] == before
    expected = xr.open_dataset(path, engine="zarr")["temperature"][2:4, ::2, 1]
    np.testing.assert_array_equal(part.values, expected.values)
    assert session.meter()[1] > before


def test_all_ways_of_indexing(tmp_path):
    path, engine = written(tmp_path, "netcdf")
    expected = xr.open_dataset(path, engine=engine)["temperature"]
    found = xr.open_dataset(path, engine="hyperslab")["temperature"]
    points = xr.DataArray([0, 3, 5], dims="p")
    for pick in [
        lambda d: d.isel(time=[0, 5, 2], x=slice(None, None, 2)),
        lambda d: d.isel(time=-1, y=[1, 1]),
        lambda d: d.isel(y=points, x=xr.DataArray([1, 2, 0], dims="p")),
        lambda d: d.isel(time=slice(None, None, -2)),
        lambda d: d.sel(time="2000-01-03"),
        lambda d: d.mean("time"),
    ]:
        xr.testing.assert_equal(pick(found), pick(expected))


def test_dask_chunks_are_those_of_the_file(tmp_path):
    pytest.importorskip("dask")
    path, engine = written(tmp_path, "netcdf")
    found = xr.open_dataset(path, engine="hyperslab", chunks={})
    assert found["temperature"].chunks == ((2, 2, 2, 2), (3, 3), (5,))
    xr.testing.assert_equal(found.load(), xr.open_dataset(path, engine=engine).load())


def test_groups_and_trees(tmp_path):
    dataset().to_netcdf(tmp_path / "t.nc")
    dataset().to_netcdf(tmp_path / "t.nc", group="inner/deep", mode="a")
    found = xr.open_dataset(tmp_path / "t.nc", engine="hyperslab", group="inner/deep")
    xr.testing.assert_equal(found.load(), dataset())
    tree = xr.open_datatree(tmp_path / "t.nc", engine="hyperslab")
    xr.testing.assert_equal(tree["inner/deep"].to_dataset().load(), dataset())
