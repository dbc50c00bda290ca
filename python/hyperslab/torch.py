"""Training input for PyTorch, straight from any store.

A `SlabDataset` is a table of boxes of arrays; a sample is what is in one of them. A `SlabLoader` plans an
epoch of such samples: it draws their order, reads many of them as one query, ahead of the training, and
gives batches.

The randomness of an epoch is stated. `shuffle="exact"` is a uniformly random order of all samples.
`shuffle="window"` draws the order of chunks uniformly, takes `window` chunks at a time, and draws the
order of the samples in them uniformly: every sample comes once in an epoch, and each chunk is fetched
once. Both follow from `seed` and the number of the epoch alone.
"""

from __future__ import annotations

import math
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from . import _core
from ._array import Array
from ._dtypes import flat
from ._errors import InvalidError, UnavailableError
from ._open import open_array
from ._options import as_text

try:
    import torch
    from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info
except ImportError as reason:
    raise ImportError(
        "hyperslab.torch needs PyTorch: install it with `pip install 'hyperslab[torch]'`"
    ) from reason

__all__ = ["SlabDataset", "SlabLoader", "SlabStream"]

KINDS = {
    np.dtype(kind): getattr(torch, name)
    for kind, name in [
        ("?", "bool"), ("u1", "uint8"), ("i1", "int8"), ("i2", "int16"), ("i4", "int32"),
        ("i8", "int64"), ("f2", "float16"), ("f4", "float32"), ("f8", "float64"),
        ("c8", "complex64"), ("c16", "complex128"), ("u2", "uint16"), ("u4", "uint32"), ("u8", "uint64"),
    ]
    if hasattr(torch, name)
}  # fmt: skip
WORKER_GONE = (
    "a worker process of the loader ended before it was done",
    "see whether it was killed for want of memory, and give it less with `memory`",
)
# The first reading of an epoch has this many batches; each one after it has twice as many.
FIRST = 1


def empty(shape: Sequence[int], kind: torch.dtype, pinned: bool) -> torch.Tensor:
    """A tensor to be filled: in a worker's shared memory, so that it is handed over without a copy."""
    if get_worker_info() is None:
        return torch.empty(tuple(shape), dtype=kind, pin_memory=pinned)
    # As PyTorch's own `default_collate` does it.
    like = torch.empty((), dtype=kind)
    storage = like._typed_storage() if hasattr(like, "_typed_storage") else like.storage()
    return like.new(storage._new_shared(math.prod(shape))).resize_(*shape)


class Field:
    """Boxes of one or several arrays, one for each sample."""

    def __init__(self, arrays: Sequence[Array], which: np.ndarray, start: np.ndarray, stop: np.ndarray, drop: tuple[int, ...]):
        kinds = {array.dtype for array in arrays}
        ranks = {array.ndim for array in arrays}
        if len(kinds) != 1 or len(ranks) != 1:
            raise InvalidError("the arrays of a dataset have different types or numbers of dimensions")
        self.dtype = kinds.pop()
        if self.dtype not in KINDS:
            raise InvalidError(f"PyTorch has no tensors of {self.dtype}")
        self.kind = KINDS[self.dtype]
        self.arrays = list(arrays)
        self.which = which
        self.start = start
        self.stop = stop
        self.drop = drop
        rank = ranks.pop()
        if start.shape != (len(which), rank) or stop.shape != start.shape:
            raise InvalidError(
                f"a table of boxes has {start.shape} starts and {stop.shape} ends for {len(which)} "
                f"samples of {rank} dimensions"
            )
        shapes = np.array([array.shape for array in arrays], dtype=np.int64).reshape(len(arrays), rank)
        wrong = ((start < 0) | (stop < start) | (stop > shapes[which])).any(axis=1)
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            raise InvalidError(
                f"box {at}, from {start[at].tolist()} to {stop[at].tolist()}, is not inside the array's "
                f"shape {tuple(shapes[which[at]])}"
            )
        sides = stop - start
        self.fixed = bool(len(sides) == 0 or (sides == sides[0]).all())

    def sides(self, sample: int) -> list[int]:
        return (self.stop[sample] - self.start[sample]).tolist()

    def shape(self, sample: int) -> list[int]:
        """What a sample looks like."""
        return [side for i, side in enumerate(self.sides(sample)) if i not in self.drop]

    def bytes(self, samples: np.ndarray) -> np.ndarray:
        """Bytes of each sample."""
        sides = self.stop[samples] - self.start[samples]
        return sides.prod(axis=1, dtype=np.int64) * self.dtype.itemsize

    def places(self) -> np.ndarray:
        """For each sample a number of the object that its box begins in."""
        rows = [self.which[:, None]]
        shapes = np.array([a.shards or a.chunks or a.shape for a in self.arrays], dtype=np.int64)
        rows.append(self.start // np.maximum(shapes[self.which], 1))
        return np.unique(np.concatenate(rows, axis=1), axis=0, return_inverse=True)[1].ravel()

    def request(self, samples: np.ndarray, pinned: bool) -> tuple[Any, list[Any]]:
        """Tensors for samples, and what to read into them: (array, selection, bytes)."""
        wanted: list[Any] = []
        ones = [1] * self.start.shape[1]

        def ask(sample: int, cells: np.ndarray) -> None:
            if cells.size:
                selection = _core.Selection.slab(self.start[sample].tolist(), ones, self.sides(sample))
                wanted.append((self.arrays[self.which[sample]]._live, selection, flat(cells)))

        if self.fixed and len(samples):
            out: Any = empty([len(samples), *self.shape(int(samples[0]))], self.kind, pinned)
            cells = out.numpy()
            for i, sample in enumerate(samples):
                ask(int(sample), cells[i : i + 1])
        else:
            out = [empty(self.shape(int(sample)), self.kind, pinned) for sample in samples]
            for tensor, sample in zip(out, samples, strict=True):
                ask(int(sample), tensor.numpy())
        return out, wanted


def opened(source: Any, options: Mapping[str, Any]) -> list[Array]:
    """One or several arrays, by themselves or by where they are."""
    sources = source if isinstance(source, (list, tuple)) else [source]
    return [one if isinstance(one, Array) else open_array(one, **options) for one in sources]


class SlabDataset(Dataset):
    """Samples that are boxes of arrays.

    - `arrays`: an array or its URL, a list of arrays, or a mapping of names to either: then a sample is a
      mapping, too.
    - `boxes`: `(starts, stops)`, each with a row for every sample and a column for every dimension; or
      `starts` alone, with `shape`; a mapping by name where arrays are one.
    - without `boxes` samples lie along `axis`: sample `i` is what `array[i]` is for axis 0, of all arrays
      one after another. `length` and `stride` make samples of several steps.
    - `which`: for each box the number of its array, if there are several.
    - `labels`: for each sample something that is given with it.
    - `transform`: called with each sample that is read by its number.
    - `options`: those of `hyperslab.open`, such as `cache_dir` and `function`.

    It is an ordinary dataset of PyTorch: `dataset[i]`, and `DataLoader(dataset, …)`, which reads each of
    its batches as one query.
    """

    def __init__(
        self,
        arrays: Any,
        boxes: Any = None,
        *,
        shape: Sequence[int] | None = None,
        which: Sequence[int] | None = None,
        axis: int = 0,
        length: int | None = None,
        stride: int | None = None,
        labels: Sequence[Any] | None = None,
        transform: Callable[[Any], Any] | None = None,
        **options: Any,
    ):
        self.named = isinstance(arrays, Mapping)
        by_name = dict(arrays) if self.named else {"": arrays}
        self.fields: dict[str, Field] = {}
        for name, source in by_name.items():
            found = opened(source, options)
            table = boxes[name] if self.named and isinstance(boxes, Mapping) else boxes
            sides = shape[name] if isinstance(shape, Mapping) else shape
            if table is None:
                self.fields[name] = along(found, axis, length, stride)
            else:
                self.fields[name] = boxed(found, table, sides, which)
        counts = {len(field.which) for field in self.fields.values()}
        if len(counts) != 1:
            raise InvalidError(f"the arrays of a dataset have different numbers of samples: {sorted(counts)}")
        self.count = counts.pop()
        if labels is not None and len(labels) != self.count:
            raise InvalidError(f"there are {len(labels)} labels for {self.count} samples")
        self.labels = labels
        self.transform = transform

    def __len__(self) -> int:
        return self.count

    def _checked(self, indexes: Sequence[int]) -> np.ndarray:
        samples = np.asarray(indexes, dtype=np.int64)
        if len(samples) and not (-self.count <= samples.min() and samples.max() < self.count):
            raise IndexError(f"a sample is out of range: there are {self.count}")
        return np.where(samples < 0, samples + self.count, samples)

    def read(self, samples: np.ndarray, pinned: bool = False) -> dict[str, Any]:
        """Reads samples, all of them as one query: for each field a tensor, or a list of tensors."""
        out: dict[str, Any] = {}
        wanted: list[Any] = []
        for name, field in self.fields.items():
            out[name], more = field.request(samples, pinned)
            wanted += more
        if wanted:
            session = wanted[0][0].session
            session.read_many(*(list(column) for column in zip(*wanted, strict=True)))
        return out

    def _one(self, read: Mapping[str, Any], at: int, sample: int) -> Any:
        value = {name: tensors[at] for name, tensors in read.items()}
        value = value if self.named else value[""]
        if self.labels is not None:
            value = (value, self.labels[sample])
        return value if self.transform is None else self.transform(value)

    def __getitem__(self, index: int) -> Any:
        return self.__getitems__([index])[0]

    def __getitems__(self, indexes: Sequence[int]) -> list[Any]:
        """Several samples, as one query; DataLoader asks for its batches so."""
        samples = self._checked(indexes)
        read = self.read(samples)
        return [self._one(read, at, int(sample)) for at, sample in enumerate(samples)]

    def batch(self, read: Mapping[str, Any], part: slice, samples: np.ndarray) -> Any:
        """A batch out of samples that were read."""
        if self.transform is not None:
            return [self._one(read, at, int(samples[at])) for at in range(part.start, part.stop)]
        value = {name: tensors[part] for name, tensors in read.items()}
        value = value if self.named else value[""]
        if self.labels is None:
            return value
        labels = [self.labels[int(sample)] for sample in samples[part]]
        try:
            return value, torch.as_tensor(np.asarray(labels))
        except (TypeError, ValueError):
            return value, labels

    def bytes(self, samples: np.ndarray) -> np.ndarray:
        """Bytes of each sample."""
        return sum(field.bytes(samples) for field in self.fields.values())


def boxed(arrays: list[Array], table: Any, shape: Sequence[int] | None, which: Any) -> Field:
    """Samples by a table of boxes."""
    if shape is not None:
        start = np.asarray(table, dtype=np.int64)
        start = start.reshape(len(start), -1)
        stop = start + np.asarray(shape, dtype=np.int64)
    else:
        if not (isinstance(table, (tuple, list)) and len(table) == 2):
            raise InvalidError("boxes are (starts, stops), or starts with `shape`")
        start, stop = (np.asarray(side, dtype=np.int64) for side in table)
    if which is None:
        if len(arrays) != 1:
            raise InvalidError("boxes of several arrays need `which`, the number of the array of each")
        numbers = np.zeros(len(start), dtype=np.int64)
    else:
        numbers = np.asarray(which, dtype=np.int64)
        if len(numbers) and not (numbers.min() >= 0 and numbers.max() < len(arrays)):
            raise InvalidError(f"`which` names an array that is not there: there are {len(arrays)}")
    return Field(arrays, numbers, start, stop, ())


def along(arrays: list[Array], axis: int, length: int | None, stride: int | None) -> Field:
    """Samples along an axis, of all arrays one after another."""
    rank = arrays[0].ndim
    if not -rank <= axis < rank:
        raise InvalidError(f"arrays of {rank} dimensions have no axis {axis}")
    axis %= rank
    steps = 1 if length is None else length
    stride = steps if stride is None else stride
    if steps < 1 or stride < 1:
        raise InvalidError("length and stride are 1 or more")
    which, start, stop = [], [], []
    for number, array in enumerate(arrays):
        first = np.arange(0, array.shape[axis] - steps + 1, stride, dtype=np.int64)
        begin = np.zeros((len(first), rank), dtype=np.int64)
        end = np.tile(np.asarray(array.shape, dtype=np.int64), (len(first), 1))
        begin[:, axis], end[:, axis] = first, first + steps
        which.append(np.full(len(first), number, dtype=np.int64))
        start.append(begin)
        stop.append(end)
    drop = (axis,) if length is None else ()
    return Field(arrays, np.concatenate(which), np.concatenate(start), np.concatenate(stop), drop)


def order_of(
    dataset: SlabDataset, shuffle: str | bool, window: int, seed: int, epoch: int
) -> np.ndarray:
    """The order of all samples in an epoch."""
    if shuffle is False:
        return np.arange(len(dataset))
    draw = np.random.Generator(np.random.PCG64([seed, epoch]))
    if shuffle in (True, "exact"):
        return draw.permutation(len(dataset))
    places = next(iter(dataset.fields.values())).places()
    rank = draw.permutation(int(places.max(initial=-1)) + 1)[places] // window
    return np.lexsort((draw.random(len(dataset)), rank))


class SlabLoader:
    """Batches of a `SlabDataset`, epoch by epoch: `for batch in loader`.

    - `shuffle`: False, "exact" (or True), or "window"; `window` is how many chunks are mixed at a time.
    - `memory`: bytes of samples that are held at a time, those of workers included.
    - `num_workers`: 0 reads ahead in a thread of this process, which is all that reading needs; more are
      processes, for transforms in Python, started as `multiprocessing_context` says.
    - `rank` and `world_size`: this process' share of the samples, where several train together.
    - `pin_memory`: tensors in pinned memory; by default where there is CUDA.

    `state_dict` and `load_state_dict` resume in the middle of an epoch. Each `for` is the next epoch;
    `set_epoch` chooses one.
    """

    def __init__(
        self,
        dataset: SlabDataset,
        batch_size: int = 1,
        *,
        shuffle: str | bool = False,
        window: int = 16,
        seed: int = 0,
        drop_last: bool = False,
        num_workers: int = 0,
        multiprocessing_context: str | None = None,
        memory: int | str = "1GiB",
        pin_memory: bool | None = None,
        rank: int = 0,
        world_size: int = 1,
        timeout: float = 0,
    ):
        if batch_size < 1 or window < 1 or num_workers < 0:
            raise InvalidError("batch_size and window are 1 or more, num_workers 0 or more")
        if shuffle not in (False, True, "exact", "window"):
            raise InvalidError(f"shuffle is {shuffle!r}, and has to be False, \"exact\" or \"window\"")
        if not 0 <= rank < world_size:
            raise InvalidError(f"rank {rank} is not one of {world_size}")
        self.dataset = dataset
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.window = window
        self.seed = seed
        self.drop_last = drop_last
        self.num_workers = num_workers
        self.multiprocessing_context = multiprocessing_context
        self.memory = _core.bytes_of(as_text(memory))
        self.pin_memory = torch.cuda.is_available() if pin_memory is None else pin_memory
        self.rank = rank
        self.world_size = world_size
        self.timeout = timeout
        self.epoch = 0
        self._delivered = 0

    def set_epoch(self, epoch: int) -> None:
        """The next `for` gives this epoch from its beginning."""
        self.epoch = epoch
        self._delivered = 0

    def state_dict(self) -> dict[str, int]:
        """Where it is: the epoch, and how many of its batches were given."""
        return {"seed": self.seed, "epoch": self.epoch, "delivered": self._delivered}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Goes on where another one was."""
        self.seed, self.epoch = state["seed"], state["epoch"]
        self._delivered = state["delivered"]

    def __len__(self) -> int:
        share = len(range(self.rank, len(self.dataset), self.world_size))
        return share // self.batch_size if self.drop_last else -(-share // self.batch_size)

    def batches(self) -> list[np.ndarray]:
        """The samples of each batch of the epoch that comes next."""
        order = order_of(self.dataset, self.shuffle, self.window, self.seed, self.epoch)
        share = order[self.rank :: self.world_size]
        cuts = [share[at : at + self.batch_size] for at in range(0, len(share), self.batch_size)]
        return cuts[: len(self)]

    def stretches(self, batches: list[np.ndarray], ahead: int) -> Iterator[list[np.ndarray]]:
        """Batches that are read together: few at first, so that training begins soon, then as many as
        `ahead` of such stretches and the one in use may hold."""
        limit = max(self.memory // (ahead + 1), 1)
        most = FIRST
        now: list[np.ndarray] = []
        held = 0
        for batch in batches:
            size = int(self.dataset.bytes(batch).sum())
            if now and (len(now) >= most or held + size > limit):
                yield now
                now, held = [], 0
                most *= 2
            now.append(batch)
            held += size
        if now:
            yield now

    def __iter__(self) -> Iterator[Any]:
        batches = self.batches()[self._delivered :]
        read = self._by_thread if self.num_workers == 0 else self._by_workers
        for stretch, samples in read(batches):
            at = 0
            everyone = np.concatenate(stretch)
            for batch in stretch:
                part = slice(at, at + len(batch))
                at += len(batch)
                value = self.dataset.batch(samples, part, everyone)
                self._delivered += 1
                yield value
        self.epoch += 1
        self._delivered = 0

    def _by_thread(self, batches: list[np.ndarray]) -> Iterator[tuple[list[np.ndarray], Any]]:
        """Reads a stretch ahead of the one in use."""
        ready: queue.Queue[Any] = queue.Queue(1)
        stop = threading.Event()

        def put(item: Any) -> bool:
            while not stop.is_set():
                try:
                    ready.put(item, timeout=0.1)
                except queue.Full:
                    continue
                return True
            return False

        def work() -> None:
            try:
                for stretch in self.stretches(batches, 2):
                    if stop.is_set():
                        return
                    samples = self.dataset.read(np.concatenate(stretch), self.pin_memory)
                    if not put((stretch, samples)):
                        return
                put(None)
            except BaseException as reason:  # noqa: BLE001  (raised where it is waited for)
                put(reason)

        thread = threading.Thread(target=work, name="hyperslab-loader", daemon=True)
        thread.start()
        try:
            while (item := ready.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            stop.set()
            thread.join()

    def _by_workers(self, batches: list[np.ndarray]) -> Iterator[tuple[list[np.ndarray], Any]]:
        """Reads stretches in other processes."""
        stretches = list(self.stretches(batches, 2 * self.num_workers))
        loader = DataLoader(
            Stretches(self.dataset),
            batch_sampler=[np.concatenate(stretch).tolist() for stretch in stretches],
            collate_fn=as_it_is,
            num_workers=self.num_workers,
            multiprocessing_context=self.multiprocessing_context,
            pin_memory=self.pin_memory,
            timeout=self.timeout,
        )
        given = iter(loader)
        for stretch in stretches:
            try:
                samples = next(given)
            except (ConnectionError, EOFError) as reason:
                raise UnavailableError(*WORKER_GONE) from reason
            except RuntimeError as reason:
                # PyTorch has no kind of its own for this.
                if "exited unexpectedly" in str(reason) or "killed by signal" in str(reason):
                    raise UnavailableError(*WORKER_GONE) from reason
                raise
            yield stretch, samples


class Stretches(Dataset):
    """A dataset whose batches are stretches, each read as one query."""

    def __init__(self, dataset: SlabDataset):
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        return index

    def read(self, indexes: list[int]) -> Any:
        return self.dataset.read(np.asarray(indexes, dtype=np.int64))

    def __getitems__(self, indexes: list[int]) -> Any:
        return self.read(indexes)


def as_it_is(samples: Any) -> Any:
    return samples


class SlabStream(IterableDataset):
    """The batches of a `SlabLoader` as an iterable dataset, for those who bring a `DataLoader`.

    `DataLoader(stream, batch_size=None, num_workers=…)`: each worker gives its share of the batches.
    """

    def __init__(self, dataset: SlabDataset, batch_size: int = 1, **how: Any):
        self.loader = SlabLoader(dataset, batch_size, **how)
        if self.loader.num_workers:
            raise InvalidError("a stream has no workers of its own", "give num_workers to the DataLoader")

    def set_epoch(self, epoch: int) -> None:
        self.loader.set_epoch(epoch)

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        worker = get_worker_info()
        if worker is None:
            yield from self.loader
            return
        batches = self.loader.batches()[worker.id :: worker.num_workers]
        for stretch, samples in self.loader._by_thread(batches):
            everyone = np.concatenate(stretch)
            at = 0
            for batch in stretch:
                yield self.loader.dataset.batch(samples, slice(at, at + len(batch)), everyone)
                at += len(batch)
