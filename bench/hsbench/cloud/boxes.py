"""The boxes that queries ask for: figure 7 of ArrayMorph (2025), drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Box = list[list[int]]
Query = dict[str, Any]

# Section 5.1: rows or columns of 1 % of the array, and 21 × 21 cells of an image.
SHARE = 0.01
SMALL = 21


def band(rng: random.Random, side: int) -> list[int]:
    """So many rows or columns, anywhere."""
    width = max(1, round(side * SHARE))
    start = rng.randrange(side - width + 1)
    return [start, start + width]


def horizontal(rng: random.Random, shape: list[int]) -> Box:
    return [band(rng, shape[0]), [0, shape[1]]]


def vertical(rng: random.Random, shape: list[int]) -> Box:
    return [[0, shape[0]], band(rng, shape[1])]


def small(rng: random.Random, shape: list[int]) -> Box:
    starts = [rng.randrange(side - SMALL + 1) for side in shape]
    return [[start, start + SMALL] for start in starts]


WORKLOADS: dict[str, Callable[[random.Random, list[int]], Box]] = {
    "horizontal": horizontal,
    "vertical": vertical,
    "small": small,
}


def draw(workload: str, shape: list[int], count: int, seed: int, turn: int) -> list[Query]:
    """The queries of one round; other rounds have others, all contenders the same."""
    rng = random.Random(f"{seed}/{workload}/{turn}")
    return [{"array": 0, "box": WORKLOADS[workload](rng, shape)} for _ in range(count)]


def cells(box: Box) -> int:
    """How many cells a box has."""
    product = 1
    for start, stop in box:
        product *= stop - start
    return product
