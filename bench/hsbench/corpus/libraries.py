"""Files of netCDF4 and PyTables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import netCDF4
import numpy as np
import tables

from . import Case


def netcdf(options: dict, classic: bool = False):
    def write(path: Path) -> None:
        kind = "NETCDF4_CLASSIC" if classic else "NETCDF4"
        with netCDF4.Dataset(path, "w", format=kind) as file:
            file.title = "a test"
            file.createDimension("time", None)
            file.createDimension("lat", 9)
            file.createDimension("lon", 14)
            file.createDimension("no_variable", 3)
            time = file.createVariable("time", "f8", ("time",))
            time.units = "days since 2000-01-01"
            time[:] = np.arange(11)
            lat = file.createVariable("lat", "f4", ("lat",))
            lat[:] = np.linspace(-80, 80, 9)
            data = file.createVariable(
                "temperature", "f4", ("time", "lat", "lon"), fill_value=-999.0, **options
            )
            data.long_name = "air temperature"
            data[:] = np.random.default_rng(1).normal(size=(11, 9, 14)).astype("f4")
            packed = file.createVariable("packed", "i2", ("lat", "lon"), **options)
            packed.scale_factor, packed.add_offset = 0.1, 20.0
            packed.set_auto_maskandscale(False)
            packed[:] = np.arange(126).reshape(9, 14)
            file.createVariable("bare", "i4", ("no_variable",))[:] = [1, 2, 3]
            if not classic:
                group = file.createGroup("model/run1")
                group.createVariable("inner", "f8", ("lon",))[:] = np.arange(14)
                words = file.createVariable("words", str, ("lat",))
                for i in range(9):
                    words[i] = f"word {i}"

    return write


def pytables(complib: str | None):
    def write(path: Path) -> None:
        filters = tables.Filters(complevel=5, complib=complib, shuffle=True) if complib else None
        rng = np.random.default_rng(2)
        with tables.open_file(path, "w", filters=filters) as file:
            file.create_array("/", "array", rng.normal(size=(20, 7)))
            carray = file.create_carray("/", "carray", tables.Int32Atom(), (60, 40), chunkshape=(17, 9))
            carray[:] = rng.integers(0, 1000, (60, 40))
            earray = file.create_earray("/group", "earray", tables.Float32Atom(), (0, 12), createparents=True)
            for _ in range(5):
                earray.append(rng.normal(size=(9, 12)).astype("f4"))
            if not (complib or "").startswith("blosc2"):
                vlarray = file.create_vlarray("/", "vlarray", tables.Int64Atom())
                for i in range(6):
                    vlarray.append(np.arange(i))
            description = np.dtype([("name", "S8"), ("value", "<f8"), ("flags", "<i4", (3,))])
            table = file.create_table("/", "table", description)
            row = table.row
            for i in range(50):
                row["name"], row["value"], row["flags"] = f"n{i}".encode(), i / 3, [i, i + 1, i + 2]
                row.append()
            table.flush()
            file.create_array("/", "flags", rng.integers(0, 2, 20).astype(bool))

    return write


def cases() -> Iterator[Case]:
    for name, options in (
        ("plain", {}),
        ("zlib", dict(zlib=True, shuffle=True)),
        ("fletcher", dict(fletcher32=True)),
        ("zstd", dict(compression="zstd")),
        ("szip", dict(compression="szip")),
        ("chunks", dict(chunksizes=(4, 5, 6), zlib=True)),
        ("big", dict(endian="big")),
    ):
        if name == "chunks":
            # `packed` has two dimensions.
            options = dict(zlib=True, complevel=9)
        yield Case(f"netcdf-{name}", frozenset({"netCDF-4", f"netCDF-4 {name}"}), netcdf(options))
    yield Case("netcdf-classic", frozenset({"netCDF-4 classic model"}), netcdf({}, classic=True))
    for complib in (None, "zlib", "blosc", "blosc:zstd", "blosc2", "blosc2:lz4"):
        name = (complib or "plain").replace(":", "-")
        yield Case(f"pytables-{name}", frozenset({"PyTables", f"PyTables {name}"}), pytables(complib))
