"""What training samples: 10 % of an array, by a table of boxes.

Camera traps: an array of images (N, 1440, 1920, 3), each image a raw chunk of 7.9 MiB. A sample is
the crop of 372 × 372 pixels (415 kB) around an animal; each image has two, anywhere.

BERT: an array of tokens (rows, 512), int32, in raw chunks of 16 MiB. A sample is a row (2 KiB); a
tenth of the rows, drawn at random, is the training set.

The table is the same in all epochs, and each epoch has an order of its own.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..cloud.layouts import Layout, write_cells

IMAGE = (1440, 1920, 3)
CROP = (372, 372)
ANIMALS = 2
TOKENS = 512
SHARE = 0.1
VOCABULARY = 30_522


@dataclass(frozen=True)
class Workload:
    """An array, the samples of it, and how many of them make a batch."""

    name: str
    layout: Layout
    starts: np.ndarray
    sides: tuple[int, ...]
    batch: int
    # Values are below this.
    top: int
    # Bytes that fsspec fetches at a time: what suits a crop, or a row.
    block: int

    @property
    def samples(self) -> int:
        return len(self.starts)

    @property
    def sample_bytes(self) -> int:
        return int(np.prod(self.sides)) * self.layout.cell

    @property
    def wanted(self) -> int:
        """Bytes that an epoch wants."""
        return self.samples * self.sample_bytes

    @property
    def stored(self) -> int:
        """Bytes of the array."""
        return int(np.prod(self.layout.shape)) * self.layout.cell

    def write(self, cells: Path, table: Path, seed: int) -> None:
        """Writes the cells, and the table of samples with the digest of each."""
        write_cells(cells, self.layout.shape, self.layout.data_type, seed, self.top)
        array = np.memmap(cells, self.layout.data_type, "r", shape=self.layout.shape)
        digests = [
            digest(array[tuple(slice(at, at + side) for at, side in zip(start, self.sides))])
            for start in self.starts
        ]
        np.savez(table, starts=self.starts, sides=self.sides, digests=np.array(digests))


def digest(sample: np.ndarray) -> int:
    """A number that tells samples apart."""
    packed = np.ascontiguousarray(sample).data
    return int.from_bytes(hashlib.blake2b(packed, digest_size=8).digest(), "little", signed=True)


def camera(quick: bool, seed: int) -> Workload:
    """About a gigabyte of images (quick: an eighth)."""
    images = 16 if quick else 128
    rng = np.random.default_rng(seed)
    starts = np.zeros((images * ANIMALS, 4), dtype=np.int64)
    starts[:, 0] = np.repeat(np.arange(images), ANIMALS)
    for axis, side in enumerate(CROP):
        starts[:, 1 + axis] = rng.integers(0, IMAGE[axis] - side + 1, len(starts))
    layout = Layout((images, *IMAGE), (1, *IMAGE), "uint8")
    return Workload("camera", layout, starts, (1, *CROP, IMAGE[2]), 4 if quick else 16, 256, 1 << 20)


def bert(quick: bool, seed: int) -> Workload:
    """About a gigabyte of tokens (quick: an eighth, in chunks of 4 MiB)."""
    chunk = 2048 if quick else 8192
    rows = chunk * (32 if quick else 64)
    rng = np.random.default_rng(seed)
    drawn = np.sort(rng.choice(rows, int(rows * SHARE), replace=False))
    starts = np.stack([drawn, np.zeros_like(drawn)], axis=1)
    layout = Layout((rows, TOKENS), (chunk, TOKENS), "int32")
    return Workload("bert", layout, starts, (1, TOKENS), 64, VOCABULARY, 64 << 10)


def make(quick: bool, seed: int) -> list[Workload]:
    """All workloads."""
    return [camera(quick, seed), bert(quick, seed)]
