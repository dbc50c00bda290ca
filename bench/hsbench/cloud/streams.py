"""The two applications of figure 14 of ArrayMorph (2025), as streams of queries.

BERT: a file of five 2-D arrays (rows of 128 int32, 512 bytes) and one 1-D array; a query reads a
run of 1 % of the rows of one of them, from anywhere: 1.7 MB on average. The paper's ranges
transfer nothing besides, so its samples are runs too.

Camera traps: images of 3 × 2880 × 3840 bytes; a query reads the box of an animal in all colours,
2.83 MB on average. Boxes are a little taller than wide, so that they touch 1.6 chunks of 16 MiB
on average: that is what the paper's 265 GB for 10,000 queries of TileDB say.

Places and sizes follow a low-discrepancy sequence instead of independent draws, so that few
queries have the averages of many.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from .boxes import Query
from .layouts import Layout

GOLDEN = (math.sqrt(5) - 1) / 2
SILVER = math.sqrt(2) - 1
BRONZE = math.sqrt(3) - 1

COLUMNS = 128
SAMPLE = 3984
BERT_ARRAYS = [f"array{number}" for number in range(5)] + ["labels"]

IMAGE = (3, 2880, 3840)
# Sides s of a box are even between these; height 1.2 s, width s ÷ 1.2: 943,000 pixels on average.
SIDES = (200.0, 1573.0)
TALL = 1.2


@dataclass(frozen=True)
class Stream:
    """Arrays, and queries on them."""

    name: str
    layouts: dict[str, Layout]
    top: int

    def draw(self, count: int, seed: int, turn: int) -> list[Query]:
        """The queries of one round."""
        rng = random.Random(f"{seed}/{self.name}")
        first, second, third = rng.random(), rng.random(), rng.random()
        queries = []
        for number in range(turn * count, (turn + 1) * count):
            place = (first + number * GOLDEN) % 1.0
            if self.name == "bert":
                queries.append(self.sample(number % len(self.layouts), place))
            else:
                across = (second + number * SILVER) % 1.0
                size = (third + number * BRONZE) % 1.0
                queries.append(self.animal(number, place, across, size))
        return queries

    def sample(self, array: int, place: float) -> Query:
        """A run of rows of one array."""
        layout = list(self.layouts.values())[array]
        start = int(place * (layout.shape[0] - SAMPLE + 1))
        whole = [[0, side] for side in layout.shape[1:]]
        return {"array": array, "box": [[start, start + SAMPLE], *whole]}

    def animal(self, number: int, place: float, across: float, size: float) -> Query:
        """A box in an image."""
        images = next(iter(self.layouts.values())).shape[0]
        side = SIDES[0] + size * (SIDES[1] - SIDES[0])
        height, width = int(side * TALL), int(side / TALL)
        top = int(place * (IMAGE[1] - height + 1))
        left = int(across * (IMAGE[2] - width + 1))
        image = number % images
        box = [[image, image + 1], [0, IMAGE[0]], [top, top + height], [left, left + width]]
        return {"array": 0, "box": box}


def bert(rows: int, packing: str) -> Stream:
    """One file; its chunks are 16 MiB, those of shards 128 KiB."""
    chunk = 32768
    inner = 256 if packing == "shards" else None
    zstd = packing == "zstd"
    layouts = {}
    for name in BERT_ARRAYS:
        flat = name == "labels"
        # A chunk of the 1-D array is all of it, below 16 MiB.
        sides = (rows,) if flat else (rows, COLUMNS)
        chunks = (rows,) if flat else (min(rows, chunk), COLUMNS)
        parts = None if inner is None or flat else (inner, COLUMNS)
        layouts[name] = Layout(sides, chunks, "int32", parts, zstd)
    return Stream("bert", layouts, 30_522)


def camera(images: int, packing: str) -> Stream:
    """Images in one array, two chunks of 16 MiB each; inner chunks of shards are 130 KiB."""
    inner = (1, 3, 144, 320) if packing == "shards" else None
    layout = Layout((images, *IMAGE), (1, 3, 1440, 3840), "uint8", inner, packing == "zstd")
    return Stream("camera", {"images": layout}, 256)


def make(name: str, packing: str, quick: bool) -> Stream:
    """The stream of this name, of about a gigabyte (quick: a few dozen megabytes)."""
    if name == "bert":
        return bert(65_536 if quick else 398_400, packing)
    return camera(4 if quick else 24, packing)
