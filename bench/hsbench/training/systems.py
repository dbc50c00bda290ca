"""The loaders by name: ours, and what others do."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..harness import OURS, ROOT
from .task import Task

CACHED = f"{OURS}, disk cache"
WINDOW = f"{OURS}, windows"
MEMORY = "download to memory"
# Chunks that are mixed at a time.
WINDOW_CHUNKS = 16


@dataclass(frozen=True)
class System:
    """A loader, and what it is compared as."""

    name: str
    ours: bool = False
    # A uniformly random order of all samples.
    exact: bool = True
    # Epochs after the first find what was fetched.
    keeps: bool = False
    # Reads whole chunks for every sample: many times slower, so it runs once and not to its end.
    slow: bool = False


SYSTEMS = [
    System(OURS, ours=True),
    System(CACHED, ours=True, keeps=True),
    System(WINDOW, ours=True, exact=False),
    System(MEMORY, keeps=True),
    System("download to disk, h5py", keeps=True),
    System("tensorstore, batches, cache", keeps=True),
    System("tensorstore, batches", slow=True),
    System("tensorstore", slow=True),
    System("zarr-python", slow=True),
    System("h5py over s3fs", slow=True),
]


def mine(task: Task) -> Iterable[Any]:
    """A `SlabLoader`, as the guide shows it."""
    from hyperslab.torch import SlabDataset, SlabLoader

    options = dict(task.options)
    if task.system == CACHED:
        options |= {"cache_dir": task.folder / "cache", "cache_fresh": "1h"}
    dataset = SlabDataset(task.zarr, task.starts, shape=task.sides, **options)
    return SlabLoader(
        dataset,
        task.batch,
        shuffle="window" if task.system == WINDOW else "exact",
        window=WINDOW_CHUNKS,
        seed=task.seed,
        num_workers=task.workers,
        multiprocessing_context="fork" if task.workers else None,
    )


def prepare(task: Task) -> Any:
    """Imports what a system needs; returns what makes its loader. The clock runs from then on."""
    import torch

    # Loaders are compared, not PyTorch's threads.
    torch.set_num_threads(1)
    if any(system.ours and system.name == task.system for system in SYSTEMS):
        sys.path.insert(0, str(ROOT / "python"))
        import hyperslab.torch  # noqa: F401

        return lambda: mine(task)
    from . import alternatives as others

    kinds = {
        MEMORY: others.FromMemory,
        "download to disk, h5py": others.FromDisk,
        "tensorstore, batches, cache": others.TensorStoreCached,
        "tensorstore, batches": others.TensorStoreBatches,
        "tensorstore": others.TensorStore,
        "zarr-python": others.Zarr,
        "h5py over s3fs": others.Hdf5,
    }
    return lambda: others.loader(kinds[task.system], task)
