"""Whole-array reads and writes of 1 GiB float32, on disk and on a simulated S3, beside the peers.

Rows: {read, write} × {16 MiB, 1 MiB chunks} × {raw, zstd level 1} × {disk, s3}. The page cache is
warm, chunk caches are off, results are buffers that each system allocates itself. On disk the floor
is a plain read (or write) of the same bytes with one thread per core; on S3 it is one round trip
plus the larger of bytes ÷ total bandwidth and largest request ÷ connection bandwidth.
"""

from __future__ import annotations

import math
import os
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import obstore

from ..harness import FAR, MORE, NEAR, OURS, OUT, Report, Settings, Spread, Unusable, interleave
from ..machine import little_free_memory, warm_memory
from ..process import BUCKET, Simulator, Worker, able, build, ours, peer

PEERS = ("tensorstore", "zarr-python", "zarr-python-64", "zarr+zarrs")
GOAL = 1.05
# How much oftener systems run that are near the fastest: a simulated network is steadier than memory,
# where runs of a tenth of a second take up to three times as long as others of the same system.
AGAIN = {"disk": MORE + 1, "s3": 1}
MIB = 1 << 20
PRESET = "fast"
# The preset `fast` of crates/sim/presets.toml: seconds, bytes per second.
LATENCY, CONNECTION, TOTAL = 0.010, 90e6, 1.25e9


@dataclass(frozen=True)
class Layout:
    """How the array is stored."""

    side: int
    chunk: int
    packing: str

    @property
    def chunk_bytes(self) -> int:
        return 4 * self.chunk * self.chunk

    def spec(self) -> dict[str, Any]:
        codecs = [{"name": "bytes", "configuration": {"endian": "little"}}]
        if self.packing == "zstd":
            codecs.append({"name": "zstd", "configuration": {"level": 1, "checksum": False}})
        return {
            "shape": [self.side, self.side],
            "chunk_shape": [self.chunk, self.chunk],
            "data_type": "float32",
            "fill_value": 0.0,
            "codecs": codecs,
        }

    def __str__(self) -> str:
        return f"{self.chunk_bytes / MIB:g} MiB {self.packing}"


def layouts(settings: Settings) -> Iterator[Layout]:
    """The quick ones have the same number of chunks per core, of a sixteenth of the size."""
    side, chunks = (4096, (1024, 256)) if settings.quick else (16384, (2048, 512))
    for chunk in chunks:
        for packing in ("raw", "zstd"):
            yield Layout(side, chunk, packing)


def make_cells(side: int, seed: int, path: Path) -> None:
    """Waves with noise, of which 10 bits of mantissa are kept: zstd makes half of it."""
    rng = np.random.default_rng(seed)
    kept = np.uint32(0xFFFFFFFF << 13 & 0xFFFFFFFF)
    with path.open("wb") as file:
        for first in range(0, side, 1024):
            places = np.arange(first * side, (first + 1024) * side, dtype=np.float64)
            cells = 100 * np.sin(places / 5000) + rng.standard_normal(places.size, dtype=np.float32)
            file.write((cells.astype("<f4").view("<u4") & kept).tobytes())


class Bench:
    """Workers, places, and the two operations."""

    def __init__(self, stack: ExitStack, settings: Settings, report: Report):
        self.report = report
        self.runs = 3
        self.folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(dir=OUT, prefix="dense-"))
        )
        self.sim = stack.enter_context(Simulator(PRESET))
        environment = self.sim.environment
        self.workers: dict[str, Worker] = {OURS: stack.enter_context(ours(environment))}
        for name in PEERS:
            self.workers[name] = stack.enter_context(peer(name, environment))
        self.side = next(layouts(settings)).side
        self.cells = self.folder / "cells"
        self.counter = 0
        self.cpu: dict[str, list[float]] = {}
        make_cells(self.side, settings.seed, self.cells)
        self.bucket = obstore.store.S3Store(
            BUCKET,
            client_options={"allow_http": True},
            endpoint=environment["AWS_ENDPOINT_URL"],
            access_key_id=environment["AWS_ACCESS_KEY_ID"],
            secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
            region=environment["AWS_REGION"],
        )
        for worker in self.workers.values():
            report.versions |= worker.ask("versions")
            worker.ask(
                "load", path=str(self.cells), data_type="float32", shape=[self.side, self.side]
            )

    @property
    def bytes(self) -> int:
        return 4 * self.side * self.side

    def url(self, place: str, name: str) -> str:
        return str(self.folder / name) if place == "disk" else f"s3://{BUCKET}/{name}"

    def remove(self, place: str, name: str) -> None:
        """Removes an array. Pages of removed files are never written to the disk, so later runs
        do not pay for earlier ones."""
        if place == "disk":
            shutil.rmtree(self.folder / name, ignore_errors=True)
            os.sync()
            return
        paths = [entry["path"] for page in self.bucket.list(name + "/") for entry in page]
        if paths:
            self.bucket.delete(paths)

    def stored_bytes(self, place: str, name: str) -> tuple[int, int]:
        """(bytes of all chunks, bytes of the largest)."""
        if place == "disk":
            sizes = [p.stat().st_size for p in (self.folder / name / "c").rglob("*") if p.is_file()]
        else:
            prefix = f"{name}/c/"
            sizes = [entry["size"] for page in self.bucket.list(prefix) for entry in page]
        return sum(sizes), max(sizes)

    def write_once(self, system: str, place: str, layout: Layout, name: str) -> float:
        worker = self.workers[system]
        worker.ask("create", url=self.url(place, name), spec=layout.spec())
        self.warm()
        return self.time(system, worker.ask("write", shape=[self.side, self.side]))

    def warm(self) -> None:
        """Memory for a result or for written files, for encoded chunks, and for the simulator."""
        warm_memory(2 * self.bytes + (256 << 20))

    def time(self, system: str, answer: dict[str, Any]) -> float:
        """Keeps the processor time of a run, which tells work from waiting on a busy machine."""
        self.cpu.setdefault(system, []).append(answer.get("cpu_seconds") or 0.0)
        return answer["seconds"]

    def read_once(self, system: str, place: str, name: str, timed: bool = True) -> float:
        """Reads and checks; the answer of a wrong read is an error, never a time."""
        worker = self.workers[system]
        worker.ask("open", url=self.url(place, name), data_type="float32")
        if timed:
            self.warm()
        seconds = self.time(system, worker.ask("read"))
        answer = worker.ask("verify", path=str(self.cells))
        worker.ask("release")
        if not answer["equal"]:
            raise Unusable(f"{system} read other cells than were written ({name} on {place}).")
        return seconds

    def reads(self, place: str, layout: Layout, name: str) -> dict[str, Spread]:
        what = f"read {layout} {place}"
        systems = {
            system: able(self.report, system, what, lambda s=system: self.read_once(s, place, name))
            for system in self.workers
        }
        if place == "disk":
            folder = str(self.folder / name / "c")
            systems["plain"] = lambda: self.workers[OURS].ask("plain_read", folder=folder)["seconds"]
        return interleave(systems, self.runs, more=AGAIN[place])

    def writes(self, place: str, layout: Layout, stored: tuple[int, int]) -> dict[str, Spread]:
        what = f"write {layout} {place}"

        def one(system: str) -> float:
            self.counter += 1
            name = f"written-{self.counter}.zarr"
            try:
                seconds = self.write_once(system, place, layout, name)
                kept = {name: list(times) for name, times in self.cpu.items()}
                self.read_once(OURS, place, name, timed=False)
                self.cpu = kept
            finally:
                self.remove(place, name)
            return seconds

        def plain() -> float:
            self.counter += 1
            name = f"plain-{self.counter}"
            total, _ = stored
            chunks = (self.side // layout.chunk) ** 2
            self.warm()
            seconds = self.workers[OURS].ask(
                "plain_write",
                folder=str(self.folder / name),
                file_bytes=math.ceil(total / chunks),
                total_bytes=total,
            )["seconds"]
            self.remove("disk", name)
            return seconds

        systems: dict[str, Callable[[], float | None]] = {
            system: able(self.report, system, what, lambda s=system: one(s)) for system in self.workers
        }
        if place == "disk":
            systems["plain"] = plain
        return interleave(systems, self.runs, more=AGAIN[place])


def s3_floor(stored: tuple[int, int]) -> float:
    """Seconds that no client can beat without splitting its largest request."""
    total, largest = stored
    return LATENCY + max(total / TOTAL, largest / CONNECTION)


def run(settings: Settings, report: Report) -> None:
    build()
    OUT.mkdir(exist_ok=True)
    lines = []
    with ExitStack() as stack:
        bench = Bench(stack, settings, report)
        for place in ("disk", "s3"):
            for layout in layouts(settings):
                wanted = [op for op in ("read", "write") if settings.wants(f"{op} {layout} {place}")]
                if not wanted:
                    continue
                name = "array.zarr"
                bench.write_once(OURS, place, layout, name)
                stored = bench.stored_bytes(place, name)
                for op in wanted:
                    bench.cpu.clear()
                    report.say(f"dense: {op} {layout} {place}")
                    # The simulator holds what is written to it, too.
                    spare = 4 << 30 if place == "disk" else 8 << 30
                    with little_free_memory(spare):
                        if op == "read":
                            times = bench.reads(place, layout, name)
                        else:
                            times = bench.writes(place, layout, stored)
                    lines.append(add_row(report, f"{op} {layout} {place}", bench, stored, times))
                bench.remove(place, name)
        report.details["network"] = bench.sim.network
    header = ["row", OURS, "MiB/s", *PEERS, "best peer", "ours ÷ best", "floor", "of floor"]
    header += ["cpu ours", "cpu best"]
    report.table(header, lines)
    report.note("Seconds: median (min–max). 'of floor' is the floor's time ÷ ours.")
    report.note(f"A system {FAR:g} times behind the median of all is measured once,")
    often = f"{1 + AGAIN['disk']} times (on S3 {1 + AGAIN['s3']} times) as often as others."
    report.note(f"those within {NEAR:g} times the fastest {often}")
    report.note("'cpu' is the processor time of one run in the process, the median of all runs.")
    report.note("On S3 the simulator shares the machine's cores with the client.")


def add_row(
    report: Report, name: str, bench: Bench, stored: tuple[int, int], times: dict[str, Spread]
) -> list[Any]:
    """Records a row; returns its line of the table."""
    size = bench.bytes
    cpu = {system: statistics.median(runs) for system, runs in bench.cpu.items()}
    mine = times[OURS].median
    peers = {system: times[system].median for system in PEERS if system in times}
    if not peers:
        raise Unusable(f"no peer can do {name}, so there is nothing to compare with.")
    best = min(peers, key=peers.__getitem__)
    ratio = mine / peers[best]
    floor = times["plain"].median if "plain" in times else s3_floor(stored)
    report.rows.append(
        {
            "row": name,
            "bytes": size,
            "stored_bytes": stored[0],
            "seconds": {system: spread.runs for system, spread in times.items()},
            "medians": {system: spread.median for system, spread in times.items()},
            "cpu_seconds": cpu,
            "best_peer": best,
            "ratio_to_best_peer": ratio,
            "floor_seconds": floor,
            "share_of_floor": floor / mine,
        }
    )
    report.say(f"  {mine:.3f} s, {ratio:.2f} × {best}")
    report.show(f"{name}: ours ÷ best peer", round(ratio, 3), f"at most {GOAL}", ratio <= GOAL)
    return [
        name,
        str(times[OURS]),
        size / MIB / mine,
        *(str(times[system]) if system in times else None for system in PEERS),
        best,
        ratio,
        f"{floor:.3f}",
        floor / mine,
        cpu[OURS],
        cpu[best],
    ]
