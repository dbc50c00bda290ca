"""Arrays that read and write like NumPy's."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

from . import _core, _replicas
from ._advice import Advice, asked
from ._attributes import Attributes
from ._dtypes import dtype_of, flat
from ._errors import InvalidError
from ._indexing import Index, orthogonal, parse
from ._options import session_of, settings_of
from ._plans import Plan
from ._replicas import Refreshed, Replica

__all__ = ["Array", "aread_many", "read_many"]

# Values that are broadcast over more bytes than this are written piece by piece.
PIECE = 256 << 20


class Array:
    """An array in a store or a file: its cells are read when they are asked for.

    >>> import hyperslab as hs, numpy as np
    >>> a = hs.save("memory://tour/a.zarr", np.arange(12).reshape(3, 4))
    >>> a[1:, ::2]
    array([[ 4,  6],
           [ 8, 10]])
    """

    __slots__ = ("__weakref__", "_core", "_described", "_dtype", "_texts")

    def __init__(self, core: _core.Array):
        self._core: _core.Array | None = core
        self._described: dict[str, Any] = core.describe()
        descr = self._described["descr"]
        self._texts = descr is None
        self._dtype = dtype_of(descr, self._described["type"])

    # What it is

    @property
    def _live(self) -> _core.Array:
        core = self._core
        if core is None:
            raise InvalidError("the array is closed", "open it again")
        return core

    @property
    def url(self) -> str:
        """Where it is."""
        return self._live.url

    @property
    def name(self) -> str:
        """The last part of its URL."""
        return self.url.split("?")[0].rstrip("/").rsplit("/", 1)[-1]

    @property
    def shape(self) -> tuple[int, ...]:
        return self._live.shape

    @property
    def dtype(self) -> np.dtype:
        return self._dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return self._dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all cells, before they are compressed."""
        return self.size * self.itemsize

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """The shape of chunks; None where nobody chose one, as in contiguous HDF5 datasets."""
        return None if self._described["free_layout"] else self._described["chunks"]

    @property
    def shards(self) -> tuple[int, ...] | None:
        """The shape of shards, if there are any."""
        return self._described["shards"]

    @property
    def codecs(self) -> list[dict[str, Any]]:
        """The codecs of chunks, as Zarr spells them."""
        return json.loads(self._described["codecs"])

    @property
    def fill_value(self) -> Any:
        """What cells are that nobody wrote."""
        cell = self._described["fill"]
        if self._texts:
            return cell.decode() if self._described["type"] == "string" else cell
        return np.frombuffer(cell, self._dtype)[0]

    @property
    def dimension_names(self) -> tuple[str | None, ...] | None:
        names = self._described["dimension_names"]
        return None if names is None else tuple(names)

    @property
    def format(self) -> str:
        """"zarr3", "zarr2" or "hdf5"."""
        return self._described["format"]

    @property
    def attrs(self) -> Attributes:
        """The attributes; changes are written at once."""
        return Attributes(self)

    @property
    def nbytes_stored(self) -> int:
        """Bytes that its chunks take in the store."""
        return self._live.stored()[1]

    def __len__(self) -> int:
        shape = self.shape
        if not shape:
            raise TypeError("len() of unsized object")
        return shape[0]

    def __repr__(self) -> str:
        if self._core is None:
            return "<hyperslab.Array (closed)>"
        more = f" chunks={self.chunks}" if self.chunks is not None else ""
        more += f" shards={self.shards}" if self.shards is not None else ""
        return f"<hyperslab.Array {self.url} shape={self.shape} dtype={self.dtype}{more}>"

    # Reading

    def __getitem__(self, key: Any) -> Any:
        fields = fields_of(key)
        if fields is not None:
            return self._read(parse((), self._live.shape))[fields]
        return self._read(parse(key, self._live.shape))

    def read(self, key: Any = ..., out: Any = None) -> Any:
        """Reads cells, as `a[key]` does; into `out` if that is given.

        `out` is anything with the buffer protocol, DLPack or `__array_interface__` that has the shape and
        the type of the result. One that is contiguous is filled without a copy.
        """
        index = parse(key, self._live.shape)
        if out is None:
            return self._read(index)
        target = as_target(out, self._dtype)
        want = np.shape(index.result(np.broadcast_to(np.empty((), "u1"), index.block)))
        if target.shape != want:
            raise InvalidError(f"the buffer has the shape {target.shape}, and the result {want}")
        if index.merge is None and not self._texts and target.flags.c_contiguous and not turned(index):
            if index.size:
                self._fill(index, flat(target))
        else:
            target[...] = self._read(index)
        return out

    def _read(self, index: Index) -> Any:
        return index.result(self._block(index))

    def _block(self, index: Index) -> np.ndarray:
        if self._texts:
            return self._texts_block(index)
        block = np.empty(index.block, self._dtype)
        if index.size:
            self._fill(index, block.reshape(-1).view(np.uint8))
        return block

    def _fill(self, index: Index, cells: np.ndarray) -> None:
        if index.kind == "slab" and index.count:
            self._live.read_slab(index.start, index.step, index.count, cells)
        elif index.is_boxes:
            self._live.read_boxes(index.starts, index.step, index.count, cells)
        else:
            self._live.read_into(index.selections()[0], cells)

    def _texts_block(self, index: Index) -> np.ndarray:
        if not index.size:
            return np.empty(index.block, self._dtype)
        texts: list[Any] = []
        for selection in index.selections():
            texts += self._live.read_texts(selection)
        return texts_array(texts, index.block, self._dtype)

    async def aread(self, key: Any = ..., out: Any = None) -> Any:
        """Reads cells while other tasks go on; a task that is cancelled ends its requests."""
        if out is not None or self._texts:
            return await asyncio.to_thread(self.read, key, out)
        return (await aread_many([(self, key)]))[0]

    async def awrite(self, key: Any, value: Any) -> None:
        """Writes cells while other tasks go on."""
        await asyncio.to_thread(self.__setitem__, key, value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("the cells are in a store, so they cannot be had without a copy")
        cells = self.read()
        return cells if dtype is None else cells.astype(dtype, copy=False)

    def __buffer__(self, flags: int) -> memoryview:
        return memoryview(self.read())

    def __dlpack__(self, **how: Any) -> Any:
        return self.read().__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # memory of the processor

    def __iter__(self) -> Iterator[Any]:
        shape = self.shape
        if not shape:
            raise TypeError("iteration over a 0-d array")
        rows = (self.shards or self.chunks or (1,))[0]
        for first in range(0, shape[0], rows):
            yield from self[first : first + rows]

    @property
    def oindex(self) -> Orthogonal:
        """Indexing by a list of coordinates for each axis, as Zarr names it."""
        return Orthogonal(self)

    @property
    def vindex(self) -> Coordinates:
        """Indexing by coordinates of single cells, or a mask of the whole array, as Zarr names it."""
        return Coordinates(self)

    # Writing

    def __setitem__(self, key: Any, value: Any) -> None:
        if fields_of(key) is not None:
            raise InvalidError(
                "fields of cells cannot be written by themselves", "read whole cells, change them, write"
            )
        self._write(parse(key, self._live.shape, write=True), value)

    def _write(self, index: Index, value: Any) -> None:
        if self._texts:
            block = index.spread(np.asarray(value, dtype=object), np.dtype(object))
        elif isinstance(value, Array):
            block = index.spread(value.read(), self._dtype)
        elif self._in_pieces(index, value):
            return
        else:
            block = index.spread(value, self._dtype)
        if not index.size:
            return
        live = self._live
        if self._texts:
            cells = block.ravel().tolist()
            each = iter(np.array_split(np.arange(len(cells)), len(index.selections())))
            for selection in index.selections():
                live.write_texts(selection, [cells[i] for i in next(each)])
            return
        bytes_ = flat(np.ascontiguousarray(block))
        selections = index.selections()
        step = len(bytes_) // len(selections)
        for i, selection in enumerate(selections):
            live.write_from(selection, bytes_[i * step : (i + 1) * step])

    def _in_pieces(self, index: Index, value: Any) -> bool:
        """Writes one value into many cells without having all of them at once."""
        if index.kind != "slab" or index.size * self.itemsize <= PIECE or np.ndim(value) > 0:
            return False
        axis = next(i for i, side in enumerate(index.count) if side > 1)
        rest = math.prod(index.count[axis + 1 :]) * self.itemsize
        side = (self.shards or self._described["chunks"])[axis]
        rows = max(1, PIECE // max(rest, 1) // side) * side
        start, step = index.start[axis], index.step[axis]
        done = 0
        while done < index.count[axis]:
            # Up to a border of chunks, so that no chunk is written twice.
            border = ((start + done * step) // rows + 1) * rows
            cells = min(-(-(border - start - done * step) // step), index.count[axis] - done)
            count = [*index.count]
            count[axis] = cells
            first = [*index.start]
            first[axis] = start + done * step
            block = np.full(count, value, self._dtype)
            self._live.write_from(_core.Selection.slab(first, index.step, count), flat(block))
            done += cells
        return True

    def resize(self, shape: int | Sequence[int]) -> None:
        """Changes the shape; cells beyond it are gone, new ones hold the fill value."""
        shape = (shape,) if isinstance(shape, int) else tuple(int(side) for side in shape)
        if any(side < 0 for side in shape):
            raise InvalidError(f"the shape {shape} has a negative side")
        self._live.resize(shape)

    def append(self, cells: Any, axis: int = 0) -> tuple[int, ...]:
        """Appends cells along an axis; returns the new shape. Several writers may append at once."""
        shape = self.shape
        if not -len(shape) <= axis < len(shape):
            raise InvalidError(f"an array of {len(shape)} dimensions has no axis {axis}")
        axis %= len(shape)
        if self._texts:
            cells = np.asarray(cells, dtype=object)
            grown = [*shape]
            grown[axis] += cells.shape[axis]
            self.resize(grown)
            where = [slice(None)] * len(shape)
            where[axis] = slice(shape[axis], None)
            self[tuple(where)] = cells
            return self.shape
        cells = np.ascontiguousarray(cells, dtype=self._dtype)
        want = shape[:axis] + shape[axis + 1 :]
        if cells.ndim != len(shape) or cells.shape[:axis] + cells.shape[axis + 1 :] != want:
            raise InvalidError(
                f"cells of the shape {cells.shape} do not fit to the array's {shape} along axis {axis}"
            )
        if cells.size:
            self._live.append(axis, flat(cells))
        return self.shape

    # Plans

    def explain(self, key: Any = ..., analyze: bool = False) -> Plan:
        """What reading `a[key]` would do, and what else could be done; `analyze` reads as well."""
        index = parse(key, self._live.shape)
        if index.is_boxes:
            raise InvalidError("a plan is made of one selection", "explain one of the boxes")
        title = f"{self.url}[{shown(key)}]"
        return Plan(self._live.explain(index.selections()[0], title, analyze))

    def advise(
        self,
        boxes: Iterable[Any] | None = None,
        *,
        trace: str | PathLike[str] | None = None,
        replicas: int = 1,
        budget: str | int | None = None,
        blocks: str | int | None = None,
        aligned: bool = False,
        chunk_bytes: Sequence[str | int] = ("64KiB", "64MiB"),
        whole: bool = False,
        append: int | Sequence[int] | None = None,
        any_order: bool = True,
        shards: str | int | None = None,
        classes: int = 16,
    ) -> Advice:
        """How this array had better be laid out for reads of these boxes, or for those of a trace.

        A box is its sides, or a pair of them and how often it is read. Layouts are compared by what
        reads cost on the array's store, or, with `blocks`, by the blocks of so many bytes they touch.
        `append` is the axis to which cells are appended, or a pair of it and how many at a time.
        """
        wish = asked(
            boxes, trace, replicas, budget, blocks, aligned, chunk_bytes, whole, append, any_order,
            shards, classes,
        )  # fmt: skip
        return Advice(self._live.advise(wish))

    # Replicas

    @property
    def replicas(self) -> list[Replica]:
        """Copies with other layouts, which answer the reads that they are cheaper for."""
        return _replicas.replicas(self._live)

    def create_replica(
        self,
        name: str | None = None,
        *,
        chunks: int | Sequence[int] | None = None,
        shards: int | Sequence[int] | None = None,
        compression: Any = None,
        order: Sequence[int] | None = None,
    ) -> Replica:
        """Makes a copy with another layout; writes through Hyperslab change it, too.

        The array may be read and written meanwhile. Takes a few seconds for the first one: until every
        writer knows.
        """
        return _replicas.create_replica(self._live, name, chunks, shards, compression, order)

    def refresh_replicas(self, abandoned: float = 900.0) -> Refreshed:
        """Brings replicas up to date after programs without Hyperslab, or writers that were killed.

        What was begun more than `abandoned` seconds ago, and not ended, is taken for interrupted.
        """
        return _replicas.refresh_replicas(self._live, abandoned)

    def remove_replica(self, name: str) -> bool:
        """Removes a replica; False if there is none of that name."""
        return self._live.remove_replica(name)

    # Handles

    def close(self) -> None:
        """Ends the use of this handle; nothing has to be written."""
        self._core = None

    def __enter__(self) -> Array:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def refresh(self) -> Array:
        """Reads the metadata again, which another program may have changed."""
        self.__init__(self._live.session.open(self.url))  # type: ignore[misc]
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return reopened, (self.url, *settings_of(self._live.session))

    def __eq__(self, other: object) -> Any:
        if isinstance(other, Array):
            return self is other or (self.url, self._core) == (other.url, other._core)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.url)


def reopened(url: str, settings: Mapping[str, str], storage: Mapping[str, str]) -> Array:
    """An array that was pickled."""
    core = session_of(settings, storage).open(url)
    if not isinstance(core, _core.Array):
        raise InvalidError(f"{url} was an array, and is a group now")
    return Array(core)


class Orthogonal:
    """`a.oindex[...]`"""

    def __init__(self, array: Array):
        self._array = array

    def __getitem__(self, key: Any) -> Any:
        return self._array._read(orthogonal(key, self._array.shape))

    def __setitem__(self, key: Any, value: Any) -> None:
        self._array._write(orthogonal(key, self._array.shape), value)


class Coordinates:
    """`a.vindex[...]`"""

    def __init__(self, array: Array):
        self._array = array

    def _checked(self, key: Any) -> Any:
        key = key if isinstance(key, tuple) else (key,)
        if any(part is None or part is Ellipsis or isinstance(part, slice) for part in key):
            raise IndexError("coordinates are integers, arrays of integers or a mask")
        masks = [np.asarray(part) for part in key if np.asarray(part).dtype.kind == "b"]
        axes = masks[0].ndim if masks and len(key) == 1 else len(key)
        if axes != self._array.ndim:
            raise IndexError(
                f"coordinates for {axes} axes were given, and the array has {self._array.ndim}"
            )
        return key

    def __getitem__(self, key: Any) -> Any:
        return self._array[self._checked(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._array[self._checked(key)] = value


def fields_of(key: Any) -> Any:
    """Names of fields, if that is what an index is."""
    if isinstance(key, str):
        return key
    if isinstance(key, list) and key and all(isinstance(part, str) for part in key):
        return key
    return None


def turned(index: Index) -> bool:
    """True if the result is not the block as it lies in memory."""
    place = index.place
    if place is None:
        return False
    return any(isinstance(part, (np.ndarray, bool)) or part == slice(None, None, -1) for part in place)


def as_target(out: Any, dtype: np.dtype) -> np.ndarray:
    """A buffer that cells can be read into."""
    if isinstance(out, np.ndarray):
        target = out
    elif hasattr(out, "__array_interface__"):
        target = np.asarray(out)
    elif hasattr(out, "__dlpack__") and not hasattr(out, "__array__"):
        target = np.from_dlpack(out)
    elif hasattr(out, "__array__"):  # a tensor of PyTorch, say, which shares its memory
        target = np.asarray(out)
    else:
        view = memoryview(out)
        if view.nbytes and view.format in ("B", "b", "c") and dtype.itemsize > 1:
            target = np.frombuffer(view, dtype)
        else:
            target = np.asarray(view)
    if target.dtype != dtype:
        raise InvalidError(
            f"the buffer has cells of {target.dtype}, and the array of {dtype}",
            "give a buffer of the array's type, and convert afterwards",
        )
    if not target.flags.writeable:
        raise InvalidError("the buffer is read only")
    return target


def texts_array(texts: list[Any], shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Cells of any length as an array."""
    cells = np.empty(len(texts), dtype)
    cells[:] = texts
    return cells.reshape(shape)


def shown(key: Any) -> str:
    """An index as people write it."""
    key = key if isinstance(key, tuple) else (key,)

    def one(part: Any) -> str:
        if part is Ellipsis:
            return "..."
        if isinstance(part, slice):
            ends = [part.start, part.stop] + ([part.step] if part.step is not None else [])
            return ":".join("" if end is None else str(end) for end in ends)
        return str(part) if np.ndim(part) == 0 else f"<{np.size(part)} coordinates>"

    return ", ".join(one(part) for part in key)


def planned(wanted: Sequence[tuple[Array, Any]]) -> list[tuple[Array, Index]]:
    return [(array, parse(key, array._live.shape)) for array, key in wanted]


def read_many(wanted: Sequence[tuple[Array, Any]]) -> list[Any]:
    """Reads several selections, of several arrays, as one query: `[(array, index), …]`.

    >>> import hyperslab as hs, numpy as np
    >>> a = hs.save("memory://tour/b.zarr", np.arange(6))
    >>> hs.read_many([(a, slice(0, 2)), (a, 5)])
    [array([0, 1]), np.int64(5)]
    """
    indexes = planned(wanted)
    blocks: list[np.ndarray] = []
    query: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
    for array, index in indexes:
        if array._texts:
            blocks.append(array._texts_block(index))
            continue
        block = np.empty(index.block, array.dtype)
        blocks.append(block)
        if not index.size:
            continue
        selections = index.selections()
        cells = flat(block)
        step = len(cells) // len(selections)
        for i, selection in enumerate(selections):
            query[0].append(array._live)
            query[1].append(selection)
            query[2].append(cells[i * step : (i + 1) * step])
    if query[0]:
        query[0][0].session.read_many(*query)
    return [index.result(block) for (_, index), block in zip(indexes, blocks, strict=True)]


async def aread_many(wanted: Sequence[tuple[Array, Any]]) -> list[Any]:
    """Reads several selections as one query, while other tasks go on."""
    indexes = planned(wanted)
    if any(array._texts for array, _ in indexes):
        return await asyncio.to_thread(read_many, wanted)
    arrays: list[Any] = []
    selections: list[Any] = []
    for array, index in indexes:
        for selection in index.selections() if index.size else []:
            arrays.append(array._live)
            selections.append(selection)
    buffers: list[np.ndarray] = []
    if arrays:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[np.ndarray]] = loop.create_future()

        def settle(result: Any, error: BaseException | None) -> None:
            if future.done():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)

        def done(result: Any, error: BaseException | None) -> None:
            # From a thread of the engine; a loop that is closed waits for nothing any more.
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, result, error)

        task = arrays[0].session.start_read(arrays, selections, done)
        try:
            buffers = await future
        except asyncio.CancelledError:
            task.cancel()
            raise
    results: list[Any] = []
    each = iter(buffers)
    for array, index in indexes:
        if not index.size:
            results.append(index.result(np.empty(index.block, array.dtype)))
            continue
        parts = [next(each) for _ in range(len(index.starts) if index.is_boxes else 1)]
        cells = parts[0] if len(parts) == 1 else np.concatenate(parts)
        results.append(index.result(cells.view(array.dtype).reshape(index.block)))
    return results
