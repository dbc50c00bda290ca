"""Physical floors of a query: what no client can beat without computing next to the data."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from .boxes import Box


@dataclass(frozen=True)
class Network:
    """Seconds, and bytes per second."""

    latency: float
    connection: float
    total: float

    def seconds(self, sizes: list[int]) -> float:
        """One round trip, and the larger of all bytes over the line and the largest request over
        its connection."""
        if not sizes:
            return 0.0
        return self.latency + max(sum(sizes) / self.total, max(sizes) / self.connection)


# The preset `bench` of crates/sim/presets.toml.
BENCH = Network(latency=0.020, connection=90e6, total=125e6)


def parts(box: Box, chunk: Iterable[int]) -> list[list[tuple[int, int, int]]]:
    """Per dimension, the chunks that a box touches: (side of the chunk, first and end inside)."""
    out = []
    for (start, stop), side in zip(box, chunk):
        pieces = []
        for number in range(start // side, (stop - 1) // side + 1):
            first = max(start, number * side) - number * side
            end = min(stop, (number + 1) * side) - number * side
            pieces.append((side, first, end))
        out.append(pieces)
    return out


def covering(box: Box, chunk: Iterable[int], cell: int) -> list[int]:
    """Bytes of the one range of each touched chunk that covers what the box wants of it."""
    sizes = []
    for piece in itertools.product(*parts(box, chunk)):
        first = last = 0
        for side, begin, end in piece:
            first = first * side + begin
            last = last * side + end - 1
        sizes.append((last + 1 - first) * cell)
    return sizes


def whole(box: Box, chunk: Iterable[int], cell: int) -> list[int]:
    """Bytes of each touched chunk."""
    sizes = []
    for piece in itertools.product(*parts(box, chunk)):
        size = cell
        for side, _, _ in piece:
            size *= side
        sizes.append(size)
    return sizes
