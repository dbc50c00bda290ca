"""Our own Python package, beside the others: what its users see."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

from ..harness import ROOT
from . import Peer

sys.path.insert(0, str(ROOT / "python"))

import hyperslab as hs  # noqa: E402


class HyperslabPy(Peer):
    """Arrays as `hyperslab.open` gives them; settings come from HSBENCH_OPTIONS, as `name=value;…`."""

    def __init__(self) -> None:
        given = os.environ.get("HSBENCH_OPTIONS", "")
        self.options = dict(one.split("=", 1) for one in given.split(";") if one)

    def versions(self) -> dict[str, str]:
        return {"hyperslab": hs.__version__}

    def open(self, url: str, data_type: Any) -> Any:
        return hs.open(url, **self.options)

    def read(self, array: Any) -> Any:
        return array[...]

    def result(self, cells: Any, data_type: Any) -> np.ndarray:
        return cells


def make(_: str) -> Peer:
    """The one variant."""
    return HyperslabPy()
