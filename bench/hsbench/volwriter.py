"""A program that writes an HDF5 file step by step, and says after each flush that it is done.

Run as `python -m hsbench.volwriter URL`; killed at any time, what it said is in the file.
"""

from __future__ import annotations

import sys

import h5py
import numpy as np

STEPS = 6
SIDE, CHUNK = 40, 16


def cells(step: int) -> np.ndarray:
    """What step `step` writes to its dataset."""
    return np.arange(SIDE * SIDE, dtype="<i4").reshape(SIDE, SIDE) + 10_000 * step


def write(file: h5py.File, step: int) -> None:
    """One step: a new dataset, rows of an older one, attributes, a link, and texts."""
    group = file.require_group(f"step{step % 3}")
    group.create_dataset(f"data{step}", data=cells(step), chunks=(CHUNK, CHUNK), compression="gzip")
    log = file["log"]
    log.resize((step + 1,))
    log[step] = step * step
    file["texts"].resize((step + 1,))
    file["texts"][step] = f"step {step}"
    file.attrs["last"] = step
    file[f"link{step}"] = h5py.SoftLink(f"/step{step % 3}/data{step}")


def main() -> None:
    with h5py.File(sys.argv[1], "w") as file:
        file.create_dataset("log", (0,), "<i8", maxshape=(None,), chunks=(2,))
        file.create_dataset("texts", (0,), h5py.string_dtype(), maxshape=(None,), chunks=(2,))
        file.flush()
        print("made", flush=True)
        for step in range(STEPS):
            write(file, step)
            file.flush()
            print(step, flush=True)
    print("closed", flush=True)


if __name__ == "__main__":
    main()
