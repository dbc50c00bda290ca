"""What a process is told about a run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Task:
    """An array in two forms, a table of samples, and how to load them."""

    system: str
    zarr: str
    hdf5: str
    table: Path
    shape: tuple[int, ...]
    chunk: tuple[int, ...]
    data_type: str
    batch: int
    workers: int
    seed: int
    # For what a system keeps between epochs.
    folder: Path
    # Settings of ours.
    options: dict[str, Any]

    @staticmethod
    def parse(given: dict[str, Any]) -> Task:
        """From JSON."""
        ready = {key: tuple(given[key]) for key in ("shape", "chunk")}
        return Task(**given | ready | {key: Path(given[key]) for key in ("table", "folder")})

    @cached_property
    def sampled(self) -> dict[str, np.ndarray]:
        with np.load(self.table) as table:
            return dict(table)

    @property
    def starts(self) -> np.ndarray:
        return self.sampled["starts"]

    @cached_property
    def sides(self) -> tuple[int, ...]:
        return tuple(self.sampled["sides"].tolist())

    @cached_property
    def boxes(self) -> list[tuple[slice, ...]]:
        return [
            tuple(slice(at, at + side) for at, side in zip(start, self.sides))
            for start in self.starts.tolist()
        ]

    def box(self, index: int) -> tuple[slice, ...]:
        """Where a sample is."""
        return self.boxes[index]

    @property
    def object_of_hdf5(self) -> str:
        return self.hdf5.rsplit("/", 1)[0]
