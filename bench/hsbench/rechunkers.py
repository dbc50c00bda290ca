"""Others that rechunk an array, each in a process of its own: `python -m hsbench.rechunkers JSON`.

The last line of the output is the seconds that the work took, without the start of Python and the
imports.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Iterator
from typing import Any


def boxes(shape: list[int], sides: list[int]) -> Iterator[tuple[slice, ...]]:
    """All boxes of these sides."""
    starts = [range(0, n, side) for n, side in zip(shape, sides)]
    for start in itertools.product(*starts):
        yield tuple(slice(a, min(a + s, n)) for a, s, n in zip(start, sides, shape))


def rechunker(source: str, target: str, chunks: list[int], memory: int, temp: str, **_: Any) -> float:
    """rechunker on dask's threads, its memory divided among them."""
    import dask
    import zarr
    from rechunker import rechunk

    threads = 2
    begun = time.perf_counter()
    array = zarr.open_array(source, mode="r")
    options = {"compressor": array.compressor}
    plan = rechunk(
        array, tuple(chunks), memory // threads, target, target_options=options, temp_store=temp
    )
    with dask.config.set(scheduler="threads", num_workers=threads):
        plan.execute()
    return time.perf_counter() - begun


def zarr_python(source: str, target: str, chunks: list[int], box: list[int], codecs: list, **_: Any) -> float:
    """A loop over boxes of whole new chunks."""
    import zarr

    begun = time.perf_counter()
    old = zarr.open_array(source, mode="r")
    compressed = any(codec["name"] == "zstd" for codec in codecs)
    new = zarr.create_array(
        target, shape=old.shape, chunks=tuple(chunks), dtype=old.dtype, compressors="auto" if compressed else None
    )
    for where in boxes(list(old.shape), box):
        new[where] = old[where]
    return time.perf_counter() - begun


def tensorstore(source: str, target: str, chunks: list[int], box: list[int], codecs: list, **_: Any) -> float:
    """The same loop."""
    import tensorstore as ts

    def spec(path: str, **more: Any) -> dict[str, Any]:
        store = {"driver": "file", "path": path}
        return {"driver": "zarr3", "kvstore": store, "context": {"cache_pool": {"total_bytes_limit": 0}}, **more}

    begun = time.perf_counter()
    old = ts.open(spec(source), read=True).result()
    grid = {"name": "regular", "configuration": {"chunk_shape": chunks}}
    metadata = {
        "shape": list(old.shape), "data_type": "float32", "chunk_grid": grid, "codecs": codecs
    }  # fmt: skip
    new = ts.open(spec(target, metadata=metadata), create=True).result()
    for where in boxes(list(old.shape), box):
        new[where].write(old[where].read().result()).result()
    return time.perf_counter() - begun


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    work = {"rechunker": rechunker, "zarr-python": zarr_python, "tensorstore": tensorstore}
    print(work[asked.pop("system")](**asked))
