"""Random indexing expressions, and arrays in every stored form; `bench/run pyindex` uses them, too."""

import numpy as np

import hyperslab as hs


def number(draw, side, wrong):
    """An index into an axis, now and then beyond it."""
    if side == 0 or draw.random() < wrong:
        return int(draw.integers(side, side + 3)) * int(draw.choice([1, -1]) or 1) - (side == 0)
    value = int(draw.integers(-side, side))
    return value if draw.random() < 0.7 else np.int64(value)


def a_slice(draw, side):
    def end():
        return None if draw.random() < 0.3 else int(draw.integers(-side - 2, side + 3))

    step = draw.choice([None, 1, 1, 2, 3, -1, -2])
    return slice(end(), end(), None if step is None else int(step))


def coordinates(draw, side, shape, wrong):
    if side == 0:
        return np.zeros(shape if 0 in shape else (0,), np.int64)
    found = draw.integers(-side, side, shape)
    if wrong and draw.random() < wrong and found.size:
        found.ravel()[0] = side + 1
    kind = draw.random()
    if kind < 0.3 and found.ndim == 1:
        return found.tolist()
    return found.astype(draw.choice(["i8", "i4", "i8"]))


def expression(draw, shape, wrong=0.03):
    """An index for an array of a shape."""
    rank = len(shape)
    if draw.random() < 0.06:
        return np.asarray(draw.integers(0, 2, shape), bool)
    if draw.random() < 0.02:
        return draw.choice([1.5, "x"]) if draw.random() < 0.5 else {"a": 1}
    common = tuple(int(n) for n in draw.integers(1, 4, draw.integers(0, 3)))
    advanced = draw.random() < 0.45
    parts = []
    axis = 0
    while axis < rank:
        way = draw.random()
        if draw.random() < 0.07:
            parts.append(None)
        if way < 0.25:
            parts.append(number(draw, shape[axis], wrong))
        elif way < 0.6 or not advanced:
            parts.append(a_slice(draw, shape[axis]))
        elif way < 0.7:
            parts.append(np.asarray(draw.integers(0, 2, shape[axis]), bool))
        elif way < 0.75 and axis + 1 < rank:
            parts.append(np.asarray(draw.integers(0, 2, shape[axis : axis + 2]), bool))
            axis += 1
        else:
            # Shapes that can be broadcast together, or now and then cannot.
            own = tuple(1 if draw.random() < 0.25 else n for n in common[int(draw.integers(0, len(common) + 1)) :])
            parts.append(coordinates(draw, shape[axis], own, wrong))
        axis += 1
    if draw.random() < 0.3:
        cut = int(draw.integers(0, len(parts) + 1))
        end = cut + int(draw.integers(0, len(parts) - cut + 1))
        parts[cut:end] = [Ellipsis]
    elif draw.random() < 0.2:
        parts = parts[: int(draw.integers(0, len(parts) + 1))]
    if draw.random() < wrong:
        parts += [0] * (rank + 1)
    if draw.random() < wrong / 2:
        parts += [Ellipsis, Ellipsis]
    if draw.random() < 0.02:
        parts.append(bool(draw.integers(0, 2)))
    return parts[0] if len(parts) == 1 and draw.random() < 0.5 else tuple(parts)


def stored_forms(folder, remote, cells):
    """The same cells in six stored forms: (name, array)."""
    import h5py

    sides = [max(1, (side + 2) // 3) for side in cells.shape]
    shards = [2 * side for side in sides]
    raw = {"compression": False, "chunks": sides, "overwrite": True}
    yield "raw", hs.save(f"{folder}/raw.zarr", cells, **raw)
    yield "zstd", hs.save(f"{folder}/zstd.zarr", cells, chunks=sides, overwrite=True)
    yield "sharded", hs.save(f"{folder}/sharded.zarr", cells, chunks=sides, shards=shards, overwrite=True)
    with h5py.File(f"{folder}/h.h5", "w") as file:
        how = {"chunks": tuple(sides), "compression": "gzip", "shuffle": True} if cells.size and sides else {}
        file.create_dataset("chunked", data=cells, **how)
        file.create_dataset("contiguous", data=cells)
    yield "hdf5 chunked", hs.open(f"{folder}/h.h5/chunked")
    yield "hdf5 contiguous", hs.open(f"{folder}/h.h5/contiguous")
    yield "remote", hs.save(f"{remote}/remote.zarr", cells, **raw)
