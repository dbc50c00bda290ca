"""Opens a file that a killed program left, and checks all that it said was flushed.

Run as `python -m hsbench.volreader URL WORD…`, with what hsbench.volwriter said.
"""

from __future__ import annotations

import sys

import h5py
import numpy as np

from .volwriter import cells


def main() -> None:
    url, said = sys.argv[1], sys.argv[2:]
    if not said:
        # Nothing was flushed: there may be nothing, but what is there must open.
        try:
            h5py.File(url)
        except FileNotFoundError:
            pass
        return
    steps = [int(word) for word in said if word.isdigit()]
    with h5py.File(url) as file:
        for step in steps:
            found = file[f"step{step % 3}/data{step}"][...]
            assert np.array_equal(found, cells(step)), f"data{step} differs"
            assert file["log"][step] == step * step, f"log {step} differs"
            assert file["texts"].asstr()[step] == f"step {step}", f"text {step} differs"
            assert np.array_equal(file[f"link{step}"][3], cells(step)[3]), f"link {step} differs"
        if steps:
            assert file.attrs["last"] >= steps[-1], "the attribute is older"
        file.visititems(lambda name, node: node[...] if isinstance(node, h5py.Dataset) else None)


if __name__ == "__main__":
    main()
