"""Times calls of libhdf5 on a local file: run with and without the connector, they tell what it adds.

Run as `python -m hsbench.volcalls FILE`: nanoseconds a call, by the name of the call, as JSON.
"""

from __future__ import annotations

import json
import sys
import time

import h5py
import numpy as np

CALLS = 100_000


def main() -> None:
    with h5py.File(sys.argv[1], "w") as file:
        file["data"] = np.arange(100)
        file["data"].attrs["here"] = 1
        dataset, name = file["data"].id, b"here"
        cell = h5py.h5s.create_simple((100,))
        cell.select_elements([[5]])
        one, memory = np.empty(1, "i8"), h5py.h5s.create_simple((1,))
        calls = {
            "H5Dget_storage_size": dataset.get_storage_size,
            "H5Dget_space": dataset.get_space,
            "H5Aexists": lambda: h5py.h5a.exists(dataset, name),
            "H5Dread of a cell": lambda: dataset.read(memory, cell, one),
        }
        told = {}
        for what, call in calls.items():
            best = []
            for _ in range(5):
                start = time.perf_counter_ns()
                for _ in range(CALLS // 5):
                    call()
                best.append((time.perf_counter_ns() - start) / (CALLS // 5))
            told[what] = min(best)
    print(json.dumps(told))


if __name__ == "__main__":
    main()
