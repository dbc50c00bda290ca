"""The Python package beside its peers: whole arrays, boxes and small reads, on disk and on a simulated S3.

Every system is asked from Python and answers NumPy arrays. Arrays are int32 of 16384 × 16384 (quick: 4096)
in chunks of 1 MiB, raw and zstd; h5py reads an HDF5 file with the same chunks (deflate in place of zstd,
which is a row of its own for the two that read it). TileDB has its own format. The simulated S3 answers
after 10 ms.
"""

from __future__ import annotations

import random
import statistics
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from ..harness import OUT, Report, Settings, interleave
from ..process import BUCKET, Simulator, Worker, able, build_python, ours, peer

MINE = "hyperslab-py"
PEERS = ("tensorstore", "zarr-python", "zarr+zarrs", "tiledb", "h5py")
NETWORK = "fast"
HDF5_PYTHON = ".venv-hdf5/bin/python"
# Cells of a kilobyte.
SMALL = (16, 16)


class Bench:
    """Workers, and the same cells in every form."""

    def __init__(self, stack: ExitStack, settings: Settings, report: Report):
        self.report, self.settings = report, settings
        self.side = 4096 if settings.quick else 16384
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=OUT, prefix="python-")))
        self.sim = stack.enter_context(Simulator(NETWORK))
        self.workers: dict[str, Worker] = {}
        for name in (MINE, *PEERS):
            python = HDF5_PYTHON if name == "h5py" else None
            self.workers[name] = stack.enter_context(peer(name, self.sim.environment, python))
            report.versions |= self.workers[name].ask("versions")
        self.cached = stack.enter_context(peer("hyperslab-py-cached", self.sim.environment))
        self.driver = stack.enter_context(ours(self.sim.environment))
        rng = np.random.default_rng(settings.seed)
        self.cells = self.folder / "cells"
        waves = (np.add.outer(np.arange(self.side), np.arange(self.side)) // 7).astype("<i4")
        waves += rng.integers(0, 50, waves.shape, dtype="<i4")
        waves.tofile(self.cells)
        del waves

    def spec(self, packing: str) -> dict[str, Any]:
        codecs: list[Any] = [{"name": "bytes", "configuration": {"endian": "little"}}]
        if packing == "zstd":
            codecs.append({"name": "zstd", "configuration": {"level": 1, "checksum": False}})
        return {
            "shape": [self.side, self.side], "chunk_shape": [512, 512], "data_type": "int32",
            "fill_value": 0, "codecs": codecs,
        }  # fmt: skip

    def url(self, place: str, system: str, packing: str) -> str:
        base = str(self.folder) if place == "disk" else f"s3://{BUCKET}"
        if system == "h5py":
            return f"{base}/{packing}.h5/x"
        return f"{base}/{packing}.tiledb" if system == "tiledb" else f"{base}/{packing}.zarr"

    def store(self, place: str, packing: str) -> list[str]:
        """Writes the cells for everybody; returns who reads them there."""
        shape = [self.side, self.side]
        self.driver.ask("load", path=str(self.cells), data_type="int32", shape=shape)
        self.driver.ask("create", url=self.url(place, MINE, packing), spec=self.spec(packing))
        self.driver.ask("write", shape=shape)
        systems = [MINE, "tensorstore", "zarr-python", "zarr+zarrs", "tiledb"]
        self.workers["tiledb"].ask(
            "ingest", url=self.url(place, "tiledb", packing), spec=self.spec(packing), path=str(self.cells)
        )
        if place == "disk" and packing == "raw":
            self.workers["h5py"].ask(
                "ingest", url=self.url(place, "h5py", packing), spec=self.spec(packing), path=str(self.cells)
            )
            systems.append("h5py")
        for system in systems:
            self.workers[system].ask(
                "open_all", urls=[self.url(place, system, packing)], data_type="int32"
            )
        return systems

    def boxes(self, kind: str, turn: int, count: int) -> list[dict[str, Any]]:
        if kind == "whole":
            return [{"array": 0, "box": [[0, self.side], [0, self.side]]}]
        rng = random.Random(f"{self.settings.seed}/{kind}/{turn}")
        shape = {"boxes": (300, 300), "small": SMALL}[kind]
        starts = [[rng.randrange(self.side - side + 1) for side in shape] for _ in range(count)]
        return [
            {"array": 0, "box": [[at, at + side] for at, side in zip(start, shape, strict=True)]}
            for start in starts
        ]

    def row(self, place: str, packing: str, kind: str, systems: list[str]) -> list[Any] | None:
        name = f"{kind} {packing} {place}"
        if not self.settings.wants(name):
            return None
        self.report.say(f"python: {name}")
        counts = {"boxes": 50, "small": 10_000 if place == "disk" else 300}
        count = counts.get(kind, 1) // (10 if self.settings.quick else 1)
        turns: dict[str, int] = {}

        def once(system: str) -> float:
            worker = self.workers[system]
            turns[system] = turns.get(system, -1) + 1
            queries = self.boxes(kind, turns[system], max(count, 1))
            seconds = sum(worker.ask("queries", queries=queries)["seconds"])
            shape = [self.side, self.side]
            answer = worker.ask("check_queries", files=[str(self.cells)], shapes=[shape], data_type="int32")
            assert answer["wrong"] == 0, f"{system} read other cells ({name})"
            return seconds

        able_systems = {s: able(self.report, s, name, lambda s=s: once(s)) for s in systems}
        times = interleave(able_systems, 3 if kind == "whole" else 5, more=1)
        mine = times[MINE].median
        peers = {s: times[s].median for s in times if s != MINE}
        best = min(peers, key=peers.__getitem__)
        ratio = peers[best] / mine
        self.report.rows.append({"row": name, "seconds": {s: t.runs for s, t in times.items()}, "best": best, "times_best": ratio})
        self.report.say(f"  {mine:.4f} s, {ratio:.2f} times as fast as {best}")
        return [name, str(times[MINE]), *(str(times[s]) if s in times else None for s in PEERS), best, ratio]

    def overhead(self) -> float:
        """Microseconds of a read of a kilobyte that is cached."""
        self.cached.ask("open_all", urls=[self.url("s3", MINE, "raw")], data_type="int32")
        box = [{"array": 0, "box": [[0, side] for side in SMALL]}] * 3000
        self.cached.ask("queries", queries=box[:100])
        return 1e6 * statistics.median(self.cached.ask("queries", queries=box)["seconds"])


def run(settings: Settings, report: Report) -> None:
    build_python()
    OUT.mkdir(exist_ok=True)
    lines = []
    with ExitStack() as stack:
        bench = Bench(stack, settings, report)
        for place in ("disk", "s3"):
            for packing in ("raw", "zstd"):
                systems = bench.store(place, packing)
                for kind in ("whole", "boxes", "small"):
                    line = bench.row(place, packing, kind, systems)
                    lines += [line] if line else []
        cached = bench.overhead()
    report.table(["row", MINE, *PEERS, "best peer", "best ÷ ours"], lines)
    report.note("Seconds: median (min–max) of all reads of a row, as a Python program sees them.")
    ratios = [line[-1] for line in lines]
    ahead = sum(ratio >= 1 for ratio in ratios) / max(len(ratios), 1)
    report.show("rows where we are ahead of the best peer", f"{ahead:.0%}", "at least 80 %", ahead >= 0.8)
    report.show("worst row: best peer ÷ ours", round(min(ratios, default=0), 3), "at least 0.9", min(ratios, default=0) >= 0.9)
    report.show("a cached read of 1 KiB, µs", round(cached, 2), "below 10", cached < 10)
