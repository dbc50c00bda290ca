"""h5py and other HDF5 programs on any store, through the connector that comes with this package."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from . import _core
from ._errors import InvalidError, NotFoundError
from ._options import as_text

__all__ = ["enable", "h5py_env"]

PLUGIN = "libhyperslab_vol.so"
# Settings that only the connector has.
OWN = ("root", "map", "accelerate", "write_cache")


def plugin_folder() -> Path:
    """The folder with the connector."""
    given = os.environ.get("HYPERSLAB_VOL")
    folder = Path(given).parent if given else Path(__file__).parent / "plugin"
    if not (folder / (Path(given).name if given else PLUGIN)).exists():
        raise NotFoundError(
            f"{PLUGIN} is not in {folder}",
            "install the wheel, or set HYPERSLAB_VOL to where `cargo build -p hyperslab-vol` put it",
        )
    return folder


def h5py_env(**settings: Any) -> dict[str, str]:
    """What to set in the environment of an HDF5 program so that it reads and writes any store.

    Settings are those of `hyperslab.options`, and `root=URL`, `map="/folder=URL"`, `accelerate=True`.
    """
    for name in settings:
        if name not in _core.SETTINGS and name not in OWN:
            known = ", ".join([*OWN, *_core.SETTINGS])
            raise InvalidError(f"the connector has no setting {name!r}", f"there are {known}")
    given = ";".join(f"{n}={as_text(v)}" for n, v in settings.items() if v is not None)
    return {
        "HDF5_PLUGIN_PATH": str(plugin_folder()),
        "HDF5_VOL_CONNECTOR": f"hyperslab {given}".rstrip(),
    }


def enable(**settings: Any) -> None:
    """Has h5py, netCDF4 and PyTables read and write `s3://…` and the like, in this process.

    Call it before they are imported: they look at the environment once.
    """
    loaded = [name for name in ("h5py", "netCDF4", "tables") if name in sys.modules]
    if loaded:
        raise InvalidError(
            f"{' and '.join(loaded)} is imported already, and looks for connectors only then",
            "call hyperslab.enable() first, or start the program with hyperslab.h5py_env()",
        )
    os.environ.update(h5py_env(**settings))
