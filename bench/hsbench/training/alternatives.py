"""Loaders of others: PyTorch's DataLoader over a dataset, with an exact shuffle.

The datasets open their array in the process that reads, when it first reads: none of the libraries
bears a fork after it was used. Workers live through all epochs.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from . import download
from .task import Task

# For tensorstore's cache: all chunks of an array.
CACHE = 4 << 30


class Samples(Dataset):
    """A plain dataset: a sample is read when it is asked for, and PyTorch stacks them."""

    def __init__(self, task: Task):
        self.task = task
        self.owner: int | None = None
        self.array: Any = None

    def open(self) -> Any:
        """Opens the array."""
        raise NotImplementedError

    def read(self, where: tuple[slice, ...]) -> Any:
        """The cells of a box."""
        return self.array[where]

    def ready(self) -> None:
        if self.owner != os.getpid():
            self.array, self.owner = self.open(), os.getpid()

    def __len__(self) -> int:
        return len(self.task.starts)

    def __getitem__(self, index: int) -> torch.Tensor:
        self.ready()
        return torch.from_numpy(np.asarray(self.read(self.task.box(index))))


class Batches(Samples):
    """A dataset whose batches are read at once, into one tensor."""

    def __getitems__(self, indexes: list[int]) -> torch.Tensor:
        self.ready()
        kind = np.dtype(self.task.data_type)
        out = torch.from_numpy(np.empty((len(indexes), *self.task.sides), kind))
        self.fill(out.numpy(), [self.task.box(index) for index in indexes])
        return out

    def fill(self, out: np.ndarray, boxes: list[tuple[slice, ...]]) -> None:
        for sample, where in zip(out, boxes):
            sample[...] = self.array[where]


class Zarr(Samples):
    """zarr-python over obstore."""

    def open(self) -> Any:
        from ..peers.zarr_python import make

        return make("zarr-python-64").open(self.task.zarr, self.task.data_type)


class Hdf5(Samples):
    """h5py over s3fs."""

    def open(self) -> Any:
        from ..peers.hdf5_ import make

        return make("h5py+s3fs").open(self.task.hdf5, self.task.data_type)


class TensorStore(Samples):
    """tensorstore, a read for each sample."""

    cache = 0

    def open(self) -> Any:
        import tensorstore as ts

        from ..peers.tensorstore_ import CONTEXT, make

        spec = make("tensorstore").spec(self.task.zarr, self.task.data_type)
        # What is cached is not asked for again; by default each read of it would cost a request.
        spec |= {"recheck_cached_data": "open"}
        context = ts.Context(CONTEXT | {"cache_pool": {"total_bytes_limit": self.cache}})
        return ts.open(spec, context=context, open=True).result()

    def read(self, where: tuple[slice, ...]) -> Any:
        return self.array[where].read().result()


class TensorStoreBatches(Batches):
    """tensorstore, the reads of a batch at once."""

    cache = 0
    open = TensorStore.open

    def fill(self, out: np.ndarray, boxes: list[tuple[slice, ...]]) -> None:
        reads = [self.array[where].read() for where in boxes]
        for sample, read in zip(out, reads):
            sample[...] = read.result()


class TensorStoreCached(TensorStoreBatches):
    """The same with a cache in memory that holds the whole array."""

    cache = CACHE


class FromDisk(Batches):
    """The HDF5 file is downloaded to disk first."""

    def __init__(self, task: Task):
        super().__init__(task)
        self.path = task.folder / "downloaded.h5"
        download.to_disk(task.object_of_hdf5, self.path)

    def open(self) -> Any:
        import h5py

        return h5py.File(self.path)[task_dataset(self.task.hdf5)]

    def fill(self, out: np.ndarray, boxes: list[tuple[slice, ...]]) -> None:
        for number, where in enumerate(boxes):
            self.array.read_direct(out, where, np.s_[number])


class FromMemory(Batches):
    """All chunks are downloaded into memory first, which workers share."""

    def __init__(self, task: Task):
        super().__init__(task)
        self.cells = download.to_memory(task.zarr, task.shape, task.chunk, task.data_type)

    def open(self) -> Any:
        return self.cells


def task_dataset(url: str) -> str:
    """The name of a dataset in its file."""
    from ..peers.hdf5_ import split

    return split(url)[1]


def as_it_is(batch: Any) -> Any:
    """What was read is a batch already."""
    return batch


def loader(kind: type[Samples], task: Task) -> DataLoader:
    """The DataLoader over a dataset."""
    dataset = kind(task)
    return DataLoader(
        dataset,
        batch_size=task.batch,
        shuffle=True,
        generator=torch.Generator().manual_seed(task.seed),
        num_workers=task.workers,
        multiprocessing_context="fork" if task.workers else None,
        persistent_workers=task.workers > 0,
        collate_fn=as_it_is if isinstance(dataset, Batches) else None,
    )
