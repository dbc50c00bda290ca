"""Makes reference files of an HDF5 file, with kerchunk or VirtualiZarr.

`python -m hsbench.references MAKER FILE URL OUT`: the references say URL, whatever FILE was scanned.
"""

from __future__ import annotations

import json
import sys


def kerchunk(path: str, url: str) -> dict:
    from kerchunk.hdf import SingleHdf5ToZarr

    with open(path, "rb") as file:
        return SingleHdf5ToZarr(file, url, inline_threshold=0).translate()


def virtualizarr(path: str, url: str) -> dict:
    """Group by group: a dataset of xarray is one group."""
    import h5py
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import LocalStore
    from virtualizarr import open_virtual_dataset
    from virtualizarr.parsers import HDFParser

    registry = ObjectStoreRegistry({"file://": LocalStore()})
    with h5py.File(path) as file:
        groups = list(file)
    refs = {".zgroup": '{"zarr_format": 2}'}
    for group in groups:
        opened = open_virtual_dataset(
            f"file://{path}", registry=registry, parser=HDFParser(group=group), loadable_variables=[]
        )
        for key, value in opened.vz.to_kerchunk(format="dict")["refs"].items():
            if isinstance(value, list):
                value = [url, *value[1:]]
            refs[f"{group}/{key}"] = value
    return {"version": 1, "refs": refs}


if __name__ == "__main__":
    maker, path, url, out = sys.argv[1:]
    references = {"kerchunk": kerchunk, "virtualizarr": virtualizarr}[maker](path, url)
    with open(out, "w") as file:
        json.dump(references, file)
