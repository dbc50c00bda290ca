"""Moving arrays to other layouts."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from . import _core
from ._array import Array
from ._errors import InvalidError
from ._layouts import codecs_of, numbers
from ._open import open_array
from ._places import place_of

__all__ = ["rechunk"]


def rechunk(
    source: Any,
    destination: Any = None,
    *,
    chunks: int | Sequence[int] | None = None,
    shards: int | Sequence[int] | None = None,
    order: Sequence[int] | None = None,
    codec: Any = None,
    memory: int | str = 1 << 30,
    temp: str | os.PathLike[str] | None = None,
    verify: bool = False,
    resume: bool = False,
    overwrite: bool = False,
    in_place: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> Array:
    """Moves an array to another layout, out of core, and returns it.

    `source` is an array, or what `open` takes; the new array is Zarr v3 and appears at `destination` when
    it is complete. With `in_place=True` the array keeps its URL: new chunks are written beside the old
    ones, and one change of metadata switches from these to those. Stop its writers before.

    - `chunks`, `shards`, `order`, `codec`: as `create` has them; what is left out stays as it is.
    - `memory`: bytes that it may take, such as "512MiB", besides the program that calls it.
    - `temp`: a folder or URL for cells between two passes, where two are needed.
    - `verify`: read both arrays and compare all cells, before the new one can be seen.
    - `resume`: go on with a call that was stopped. `overwrite`: replace what is there.

    >>> import hyperslab as hs, numpy as np
    >>> days = hs.save("memory://doc/days.zarr", np.arange(24).reshape(6, 4), chunks=(1, 4))
    >>> places = hs.rechunk(days, "memory://doc/places.zarr", chunks=(6, 1), verify=True)
    >>> places.chunks, places[:, 2]
    ((6, 1), array([ 2,  6, 10, 14, 18, 22]))
    """
    if in_place == (destination is not None):
        raise InvalidError("a rechunk needs either a destination or in_place=True")
    if isinstance(source, Array):
        array = source
    else:
        array = open_array(source, storage_options=storage_options, **options)
    rank = len(array.shape)

    def of_array(given: int | Sequence[int] | None, what: str) -> list[int] | None:
        if given is None:
            return None
        return [given] * rank if isinstance(given, int) else numbers(given, what)

    how = {
        "chunks": of_array(chunks, "chunks"),
        "shards": of_array(shards, "shards"),
        "order": None if order is None else numbers(order, "order"),
        "compression": codecs_of(codec),
        "memory": memory if isinstance(memory, int) else _core.bytes_of(memory),
        "temp": None if temp is None else os.fspath(temp),
        "verify": verify,
        "resume": resume,
        "overwrite": overwrite,
    }
    url = None if destination is None else place_of(destination, None)[0]
    made, _ = _core.rechunk_array(array._live, url, json.dumps(how))
    return Array(made)
