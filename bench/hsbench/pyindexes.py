"""Compares random indexing expressions with NumPy's; run by `bench/run pyindex` in its own process."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
from expressions import expression, stored_forms

SHAPES = [(23,), (9, 11), (6, 7, 5), (4, 3, 5, 4), (), (0, 4), (6, 1), (3, 2, 2, 2, 3)]


def outcome(array: Any, key: Any) -> Any:
    try:
        return array[key]
    except (IndexError, ValueError, TypeError) as reason:
        return reason


def equal(found: Any, expected: Any) -> bool:
    if isinstance(expected, Exception):
        kind = IndexError if isinstance(expected, IndexError) else Exception
        return isinstance(found, kind)
    if isinstance(found, Exception) or isinstance(found, np.ndarray) != isinstance(expected, np.ndarray):
        return False
    return found.dtype == expected.dtype and found.shape == expected.shape and found.tobytes() == expected.tobytes()


def main() -> None:
    folder, remote, total, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    draw = np.random.default_rng(seed)
    forms: dict[str, dict[str, int]] = {}
    different: list[str] = []
    errors = 0
    for number, shape in enumerate(SHAPES):
        cells = np.arange(np.prod(shape, dtype=int), dtype="<i4").reshape(shape)
        arrays = list(stored_forms(folder, f"{remote}/{number}", cells))
        for _ in range(total // len(SHAPES)):
            key = expression(draw, shape)
            expected = outcome(cells, key)
            errors += isinstance(expected, Exception)
            for name, array in arrays:
                counts = forms.setdefault(name, {"compared": 0, "equal": 0})
                found = outcome(array, key)
                counts["compared"] += 1
                same = equal(found, expected)
                counts["equal"] += same
                if not same:
                    different.append(f"{name} {shape} {key!r}: {found!r} and not {expected!r}"[:300])
    print(json.dumps({"forms": forms, "errors": errors, "different": different}))


if __name__ == "__main__":
    main()
