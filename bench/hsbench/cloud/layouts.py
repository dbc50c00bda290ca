"""How arrays are stored, and the cells they hold."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

MIB = 1 << 20


@dataclass(frozen=True)
class Layout:
    """An array's shape and chunks; `inner` are the chunks of shards, `zstd` compresses them."""

    shape: tuple[int, ...]
    chunk: tuple[int, ...]
    data_type: str = "int32"
    inner: tuple[int, ...] | None = None
    zstd: bool = False

    @property
    def cell(self) -> int:
        return np.dtype(self.data_type).itemsize

    @property
    def chunk_bytes(self) -> int:
        return int(np.prod(self.chunk)) * self.cell

    @property
    def packing(self) -> str:
        """What is done to the cells of a chunk."""
        words = ["shards"] if self.inner else []
        return " ".join(words + (["zstd"] if self.zstd else [])) or "raw"

    @property
    def name(self) -> str:
        """A name for URLs."""
        sides = "x".join(map(str, self.chunk))
        return f"{sides}-{self.packing}".replace(" ", "-")

    def __str__(self) -> str:
        return f"{self.chunk_bytes / MIB:.3g} MiB {self.packing}"

    def codecs(self) -> list[dict[str, Any]]:
        endian = {"name": "bytes", "configuration": {"endian": "little"}}
        if self.cell == 1:
            endian = {"name": "bytes"}
        chain = [endian]
        if self.zstd:
            chain.append({"name": "zstd", "configuration": {"level": 1, "checksum": False}})
        if self.inner is None:
            return chain
        little = {"name": "bytes", "configuration": {"endian": "little"}}
        sharding = {
            "chunk_shape": list(self.inner),
            "codecs": chain,
            "index_codecs": [little, {"name": "crc32c"}],
            "index_location": "end",
        }
        return [{"name": "sharding_indexed", "configuration": sharding}]

    def spec(self) -> dict[str, Any]:
        """The parts of Zarr v3 metadata that all workers take."""
        return {
            "shape": list(self.shape),
            "chunk_shape": list(self.chunk),
            "data_type": self.data_type,
            "fill_value": 0,
            "codecs": self.codecs(),
        }


def write_cells(path: Path, shape: tuple[int, ...], data_type: str, seed: int, top: int) -> None:
    """Random whole numbers below `top`, a slab at a time: of 32 bits they fill 15 or so, which is
    what tokens and pixels are like, and zstd makes about half of it."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(data_type).newbyteorder("<")
    row = int(np.prod(shape[1:], dtype=np.int64))
    step = max(1, (16 * MIB) // max(1, row * dtype.itemsize))
    with path.open("wb") as file:
        for start in range(0, shape[0], step):
            rows = min(step, shape[0] - start)
            # Never 0: that is the fill value, and a missing chunk must not pass for a right one.
            file.write(rng.integers(1, top, rows * row, dtype=dtype.newbyteorder("=")).tobytes())
