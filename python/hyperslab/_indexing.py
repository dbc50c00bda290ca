"""NumPy's indexing on arrays that are somewhere else.

An index is taken apart into the cells that have to be read, which arrive as a *block*, and an index of
NumPy's own that makes the result of the block. So the rules of NumPy (what an integer drops, where the
axes of index arrays go, which way a negative step turns) are NumPy's business, and the same block serves
reads and writes.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from . import _core

__all__ = ["Index", "orthogonal", "parse"]

INDEXES = (
    "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean "
    "arrays are valid indices"
)
# A block of all combinations of coordinates may have so many times the cells that are wanted of it.
DENSE = 2


class Index:
    """Cells to be read, and how the result is made of them.

    `kind` is "slab" (start, step and count along each axis), "outer" (a list of coordinates along each
    axis) or "points" (single cells, or boxes of one shape, each at its start).
    """

    __slots__ = ("block", "count", "empty", "kind", "lists", "merge", "place", "start", "starts", "step")

    kind: str
    # The shape of the block.
    block: tuple[int, ...]
    # The index that makes the result of the block; None if it is the result.
    place: Any
    # For points: how boxes become the result.
    merge: Merge | None
    # True if index arrays select nothing of the block.
    empty: bool

    def __init__(self) -> None:
        self.empty = False

    @property
    def size(self) -> int:
        """How many cells of the block are wanted, at most."""
        return 0 if self.empty else math.prod(self.block)

    def selections(self) -> list[_core.Selection]:
        """The same for the engine; several for boxes."""
        if self.kind == "slab":
            if not self.count:
                return [_core.Selection.all()]
            return [_core.Selection.slab(self.start, self.step, self.count)]
        if self.kind == "outer":
            return [_core.Selection.outer(self.lists)]
        if self.is_boxes:
            return [
                _core.Selection.slab(start, self.step, self.count) for start in self.starts.tolist()
            ]
        return [_core.Selection.points(self.starts.shape[1], self.starts.ravel())]

    @property
    def is_boxes(self) -> bool:
        """True for boxes of several cells each."""
        return self.kind == "points" and math.prod(self.count) > 1

    def result(self, block: np.ndarray) -> Any:
        """The result, made of the cells of the block."""
        if self.merge is not None:
            return self.merge.result(block)
        return block if self.place is None else block[self.place]

    def spread(self, value: Any, dtype: np.dtype) -> np.ndarray:
        """A block that has the cells of a value which is to be written, as NumPy would assign it."""
        if (
            self.place is None
            and self.merge is None
            and isinstance(value, np.ndarray)
            and value.dtype == dtype
            and value.shape == self.block
            and value.flags.c_contiguous
        ):
            return value
        if self.merge is not None:
            return self.merge.spread(value, dtype, self.block)
        block = np.empty(self.block, dtype)
        block[... if self.place is None else self.place] = value
        return block


class Merge:
    """Boxes at points: which box each part of the result is, and where its axes go."""

    def __init__(self, inverse: np.ndarray, view: tuple[Any, ...], position: int):
        self.inverse = inverse
        self.view = view
        self.position = position

    def _moved(self, array: np.ndarray) -> np.ndarray:
        """The axes of the index arrays, which are the first, at their place in the result."""
        ndim = self.inverse.ndim
        array = array[(slice(None),) * ndim + self.view]
        return np.moveaxis(array, range(ndim), range(self.position, self.position + ndim))

    def result(self, block: np.ndarray) -> np.ndarray:
        return self._moved(block[self.inverse])

    def spread(self, value: Any, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
        every = np.empty(self.inverse.shape + shape[1:], dtype)
        self._moved(every)[...] = value
        block = np.empty(shape, dtype)
        # Of several values for one cell the last one stays, as in NumPy.
        block[self.inverse.ravel()] = every.reshape(self.inverse.size, *shape[1:])
        return block


def out_of_bounds(index: int, axis: int, shape: tuple[int, ...]) -> IndexError:
    return IndexError(
        f"index {index} is out of bounds for axis {axis} with size {shape[axis]} "
        f"(the array's shape is {shape})"
    )


def too_many(given: int, shape: tuple[int, ...]) -> IndexError:
    return IndexError(
        f"too many indices for array: array is {len(shape)}-dimensional, but {given} were indexed "
        f"(its shape is {shape})"
    )


def span(part: slice, side: int) -> tuple[int, int, int, bool]:
    """Start, step and count of a slice, going up, and whether it goes down."""
    start, stop, step = part.indices(side)
    if step > 0:
        count = (stop - start + step - 1) // step if stop > start else 0
        return (start if count else 0), (step if count > 1 else 1), count, False
    count = (start - stop - step - 1) // -step if start > stop else 0
    if count == 0:
        return 0, 1, 0, False
    return start + (count - 1) * step, (-step if count > 1 else 1), count, count > 1


def parse(key: Any, shape: tuple[int, ...], write: bool = False) -> Index:
    """Takes an index apart."""
    if type(key) is not tuple:
        key = (key,)
    start: list[int] = []
    step: list[int] = []
    count: list[int] = []
    place: list[Any] = []
    plain = True
    ellipsis = False
    axis = 0
    for at, part in enumerate(key):
        if type(part) is slice:
            if axis >= len(shape):
                raise too_many(consumed(key), shape)
            first, stride, cells, down = span(part, shape[axis])
            start.append(first)
            step.append(stride)
            count.append(cells)
            if down:
                plain = False
                place.append(slice(None, None, -1))
            else:
                place.append(slice(None))
            axis += 1
        elif part is Ellipsis:
            if ellipsis:
                raise IndexError("an index can only have a single ellipsis ('...')")
            ellipsis = True
            rest = key[at + 1 :]
            if any(type(other) not in (int, slice) and other is not None for other in rest):
                return advanced(key, shape, write)
            many = len(shape) - axis - sum(other is not None for other in rest)
            if many < 0:
                raise too_many(consumed(key), shape)
            for side in shape[axis : axis + many]:
                start.append(0)
                step.append(1)
                count.append(side)
            place.append(Ellipsis)
            axis += many
        elif part is None:
            plain = False
            place.append(None)
        elif type(part) is int or isinstance(part, np.integer):
            if axis >= len(shape):
                raise too_many(consumed(key), shape)
            side = shape[axis]
            index = int(part)
            if index < 0:
                index += side
            if not 0 <= index < side:
                raise out_of_bounds(int(part), axis, shape)
            start.append(index)
            step.append(1)
            count.append(1)
            plain = False
            place.append(0)
            axis += 1
        else:
            return advanced(key, shape, write)
    for side in shape[axis:]:
        start.append(0)
        step.append(1)
        count.append(side)
    index_ = Index()
    index_.kind = "slab"
    index_.start, index_.step, index_.count = start, step, count
    index_.block = tuple(count)
    index_.merge = None
    # A block without axes is a cell, unless an ellipsis asks for an array.
    index_.place = None if plain and (shape or ellipsis) else tuple(place)
    return index_


def consumed(key: tuple[Any, ...]) -> int:
    """How many axes an index is about."""
    total = 0
    for part in key:
        if part is None or part is Ellipsis:
            continue
        total += part.ndim if isinstance(part, np.ndarray) and part.dtype.kind == "b" else 1
    return total


def taken_apart(key: tuple[Any, ...], shape: tuple[int, ...]) -> list[tuple[str, Any]]:
    """The parts of an index by what they are: new, ellipsis, slice, int, array, mask."""
    parts: list[tuple[str, Any]] = []
    used = 0
    for part in key:
        if part is None:
            parts.append(("new", None))
        elif part is Ellipsis:
            if ("ellipsis", None) in parts:
                raise IndexError("an index can only have a single ellipsis ('...')")
            parts.append(("ellipsis", None))
        elif isinstance(part, slice):
            parts.append(("slice", part))
            used += 1
        elif isinstance(part, (int, np.integer)) and not isinstance(part, (bool, np.bool_)):
            parts.append(("int", int(part)))
            used += 1
        else:
            array = as_index(part)
            if array.dtype.kind == "b":
                parts.append(("mask", array))
                used += array.ndim
            elif array.ndim == 0:
                parts.append(("int", int(array)))
                used += 1
            else:
                parts.append(("array", array))
                used += 1
    if used > len(shape):
        raise too_many(used, shape)
    return parts


def as_index(part: Any) -> np.ndarray:
    """An array of integers or booleans."""
    if isinstance(part, (str, bytes)):
        raise IndexError(INDEXES)
    if isinstance(part, (bool, np.bool_)):
        return np.asarray(part, bool)
    if not isinstance(part, (list, tuple, np.ndarray)) and not hasattr(part, "__array__"):
        try:
            return np.asarray(operator.index(part))
        except TypeError:
            if not hasattr(part, "__len__"):
                raise IndexError(INDEXES) from None
    array = np.asarray(part)
    if array.size == 0 and not isinstance(part, np.ndarray):
        array = array.astype(np.int64)
    if array.dtype.kind not in "biu":
        raise IndexError("arrays used as indices must be of integer (or boolean) type")
    return array if array.dtype.kind == "b" else array.astype(np.int64, copy=False)


def wrapped(array: np.ndarray, axis: int, shape: tuple[int, ...]) -> np.ndarray:
    """Coordinates from 0 up."""
    side = shape[axis]
    outside = (array < -side) | (array >= side)
    if outside.any():
        raise out_of_bounds(int(array[outside][0]), axis, shape)
    return np.where(array < 0, array + side, array)


def masked(mask: np.ndarray, axis: int, shape: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """Coordinates of what is true in a mask that begins at an axis."""
    for i, side in enumerate(mask.shape):
        if side != shape[axis + i]:
            raise IndexError(
                "boolean index did not match indexed array along axis "
                f"{axis + i}; size of axis is {shape[axis + i]} but size of corresponding boolean "
                f"axis is {side}"
            )
    return tuple(where.astype(np.int64) for where in mask.nonzero())


def advanced(key: tuple[Any, ...], shape: tuple[int, ...], write: bool) -> Index:
    """Takes an index with arrays apart."""
    parts = taken_apart(key, shape)
    used = sum(
        part.ndim if what == "mask" else what in ("slice", "int", "array") for what, part in parts
    )
    start, step, count = [0] * len(shape), [1] * len(shape), list(shape)
    # By axis: coordinates of index arrays.
    arrays: dict[int, np.ndarray] = {}
    # What the whole index is of a block that has all combinations of coordinates.
    place: list[Any] = []
    shapes: list[tuple[int, ...]] = []
    axis = 0
    for what, part in parts:
        if what == "new":
            place.append(None)
        elif what == "ellipsis":
            place.append(Ellipsis)
            axis += len(shape) - used
        elif what == "slice":
            start[axis], step[axis], count[axis], down = span(part, shape[axis])
            place.append(slice(None, None, -1) if down else slice(None))
            axis += 1
        elif what == "int":
            if not -shape[axis] <= part < shape[axis]:
                raise out_of_bounds(part, axis, shape)
            start[axis], count[axis] = part % shape[axis], 1
            place.append(0)
            axis += 1
        elif what == "array":
            arrays[axis] = part
            shapes.append(part.shape)
            place.append(axis)
            axis += 1
        elif part.ndim == 0:
            shapes.append((int(part),))
            place.append(bool(part))
        else:
            for coordinates in masked(part, axis, shape):
                arrays[axis] = coordinates
                shapes.append(coordinates.shape)
                place.append(axis)
                axis += 1
    try:
        common = np.broadcast_shapes(*shapes)
    except ValueError:
        shown = " ".join(map(str, shapes))
        raise IndexError(
            f"shape mismatch: indexing arrays could not be broadcast together with shapes {shown}"
        ) from None
    for axis, array in arrays.items():
        # NumPy looks at coordinates only where any are left once they are broadcast together.
        arrays[axis] = np.zeros_like(array) if 0 in common else wrapped(array, axis, shape)
    uniques = {axis: np.unique(array, return_inverse=True) for axis, array in arrays.items()}
    combinations = math.prod(len(unique) for unique, _ in uniques.values())
    dense = not write and combinations <= DENSE * math.prod(common)
    if len(arrays) < 2 or is_outer(shapes, len(common)) or dense:
        index = outer(shape, (start, step, count), arrays, uniques, place, parts)
    else:
        index = points(shape, (start, step, count), arrays, common, parts, used)
    index.empty = 0 in common
    return index


def is_outer(shapes: list[tuple[int, ...]], ndim: int) -> bool:
    """True if each index array changes along axes of its own, so that all combinations are wanted."""
    seen: set[int] = set()
    for shape in shapes:
        offset = ndim - len(shape)
        changing = {offset + i for i, side in enumerate(shape) if side != 1}
        if seen & changing:
            return False
        seen |= changing
    return True


def outer(
    shape: tuple[int, ...],
    slab: tuple[list[int], list[int], list[int]],
    arrays: dict[int, np.ndarray],
    uniques: dict[int, tuple[np.ndarray, np.ndarray]],
    place: list[Any],
    parts: list[tuple[str, Any]],
) -> Index:
    start, step, count = slab
    index = Index()
    index.merge = None
    marks = iter(sorted(arrays))
    filled: list[Any] = []
    # Axes stand in `place` where their coordinates go; they are the only ints but for the zeros of
    # integers, and both come in the order of the parts.
    kinds = expanded(parts)
    for part, kind in zip(place, kinds, strict=True):
        if kind == "array":
            axis = next(marks)
            filled.append(uniques[axis][1].reshape(arrays[axis].shape))
        else:
            filled.append(part)
    index.place = tuple(filled)
    sides = [len(uniques[axis][0]) if axis in uniques else count[axis] for axis in range(len(shape))]
    index.block = tuple(sides)
    if not arrays:
        index.kind = "slab"
        index.start, index.step, index.count = start, step, count
        return index
    index.kind = "outer"
    index.lists = [
        uniques[axis][0]
        if axis in uniques
        else np.arange(start[axis], start[axis] + step[axis] * count[axis], step[axis], dtype=np.int64)
        for axis in range(len(shape))
    ]
    return index


def expanded(parts: list[tuple[str, Any]]) -> list[str]:
    """What the parts are, with one entry for each axis of a mask."""
    kinds: list[str] = []
    for what, part in parts:
        if what != "mask":
            kinds.append(what)
        elif part.ndim == 0:
            kinds.append("bool")
        else:
            kinds += ["array"] * part.ndim
    return kinds


def points(
    shape: tuple[int, ...],
    slab: tuple[list[int], list[int], list[int]],
    arrays: dict[int, np.ndarray],
    common: tuple[int, ...],
    parts: list[tuple[str, Any]],
    used: int,
) -> Index:
    start, step, count = slab
    axes = sorted(arrays)
    spread = np.stack([np.broadcast_to(arrays[axis], common).ravel() for axis in axes], axis=1)
    sides = [shape[axis] for axis in axes]
    if math.prod(sides) < 2**62:
        flat = np.ravel_multi_index(tuple(spread.T), sides) if spread.size else np.zeros(0, np.int64)
        unique, inverse = np.unique(flat, return_inverse=True)
        coordinates = np.stack(np.unravel_index(unique, sides), axis=1).astype(np.int64)
    else:
        coordinates, inverse = np.unique(spread, axis=0, return_inverse=True)
    starts = np.tile(np.array(start, dtype=np.int64), (len(coordinates), 1))
    for i, axis in enumerate(axes):
        starts[:, axis] = coordinates[:, i]
        step[axis] = count[axis] = 1
    index = Index()
    index.kind = "points"
    index.start, index.step, index.count = [], step, count
    index.starts = np.ascontiguousarray(starts)
    index.block = (len(coordinates), *count)
    index.place = None
    # Behind the points come all axes: those of index arrays have one cell, and go.
    view: list[Any] = []
    chosen: list[bool] = []
    axis = 0
    for what, part in parts:
        if what == "new":
            view.append(None)
            chosen.append(False)
        elif what == "ellipsis":
            many = len(shape) - used
            view += [slice(None)] * many
            chosen += [False] * max(many, 1)
            axis += many
        elif what == "slice":
            view.append(slice(None, None, -1) if span(part, shape[axis])[3] else slice(None))
            chosen.append(False)
            axis += 1
        else:
            ndim = part.ndim if what == "mask" else 1
            view += [0] * ndim
            chosen += [True] * max(ndim, 1)
            axis += ndim
    first = chosen.index(True)
    last = len(chosen) - chosen[::-1].index(True)
    together = all(chosen[first:last])
    # Axes of the result before the first index array: an ellipsis for no axis has none.
    before = 0
    for what, _ in parts:
        if what in ("int", "array", "mask"):
            break
        before += len(shape) - used if what == "ellipsis" else 1
    index.merge = Merge(inverse.reshape(common), tuple(view), before if together else 0)
    return index


def orthogonal(key: Any, shape: tuple[int, ...]) -> Index:
    """Takes an index apart whose arrays are each for its own axis, as Zarr's `oindex` has it."""
    if type(key) is not tuple:
        key = (key,)
    parts = taken_apart(key, shape)
    if any(what == "new" for what, _ in parts):
        raise IndexError("an orthogonal index has no new axes")
    used = sum(what != "ellipsis" for what, _ in parts)
    if any(what == "mask" and part.ndim != 1 for what, part in parts):
        raise IndexError("an orthogonal index has masks of one axis only")
    if any(what == "array" and part.ndim != 1 for what, part in parts):
        raise IndexError("an orthogonal index has arrays of one axis only")
    lists: list[np.ndarray] = []
    takes: list[np.ndarray] = []
    drop: list[Any] = []
    axis = 0
    for what, part in [*parts, *([] if ("ellipsis", None) in parts else [("ellipsis", None)])]:
        if what == "ellipsis":
            for side in shape[axis : axis + len(shape) - used]:
                lists.append(np.arange(side, dtype=np.int64))
                takes.append(np.arange(side))
                drop.append(slice(None))
            axis += len(shape) - used
            continue
        if what == "slice":
            first, stride, cells, down = span(part, shape[axis])
            chosen = np.arange(first, first + stride * cells, stride, dtype=np.int64)
            order = np.arange(cells)[::-1] if down else np.arange(cells)
            drop.append(slice(None))
        elif what == "int":
            if not -shape[axis] <= part < shape[axis]:
                raise out_of_bounds(part, axis, shape)
            chosen, order = np.array([part % shape[axis]], dtype=np.int64), np.zeros(1, np.int64)
            drop.append(0)
        else:
            given = masked(part, axis, shape)[0] if what == "mask" else wrapped(part, axis, shape)
            chosen, order = np.unique(given, return_inverse=True)
            drop.append(slice(None))
        lists.append(chosen)
        takes.append(order)
        axis += 1
    index = Index()
    index.kind = "outer" if shape else "slab"
    index.lists = lists
    index.start = index.step = index.count = []
    index.block = tuple(len(chosen) for chosen in lists)
    index.place = None
    # Integers have one coordinate; their axes go after the combination.
    index.merge = Orthogonal(np.ix_(*takes), tuple(drop)) if shape else None
    return index


class Orthogonal(Merge):
    """Combinations of coordinates in the order, and as often, as they were asked for."""

    def __init__(self, mesh: tuple[Any, ...], drop: tuple[Any, ...]):
        self.mesh = mesh
        self.drop = drop

    def result(self, block: np.ndarray) -> np.ndarray:
        return block[self.mesh][self.drop]

    def spread(self, value: Any, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
        every = np.empty(np.broadcast_shapes(*(part.shape for part in self.mesh)), dtype)
        every[self.drop] = value
        block = np.empty(shape, dtype)
        block[self.mesh] = every
        return block
