"""Boxes of an HDF5 file with 1,000 datasets on a simulated S3, beside h5py and reference files.

The file is as h5py writes it by default: nothing is moved together for the cloud. Rows: the first
open (until every dataset's shape and type are known), 100 boxes one after another, and the same 100
as one query, which only Hyperslab can say. Each measurement of boxes begins in a new process, and its
time has the opening of the file and, by name, of each dataset in it. By then Hyperslab has kept the
file's index on disk, as it does after a first open; kerchunk and VirtualiZarr have made their
references; h5py keeps nothing. The floor is one round trip for each box and its bytes, and for the
query one round trip and all bytes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from ..harness import OURS, OUT, Report, Settings, Unusable, interleave
from ..process import BUCKET, Failed, Simulator, Worker, build, ours, peer

REFERENCES = ("kerchunk", "virtualizarr")
PEERS = ("h5py+s3fs", *REFERENCES)
PRESET = "bench"
# The preset `bench` of crates/sim/presets.toml: seconds, bytes per second.
LATENCY, CONNECTION, TOTAL = 0.020, 90e6, 125e6
GROUPS, EACH, SIDE, CHUNK, BOX = 20, 50, 256, 64, 48


def write_file(path: Path, seed: int) -> None:
    """1,000 datasets of 256 KiB in 20 groups, in chunks of 16 KiB, with attributes."""
    rng = np.random.default_rng(seed)
    with h5py.File(path, "w") as file:
        for g in range(GROUPS):
            group = file.create_group(f"run{g:02}")
            group.attrs["description"] = f"run number {g}"
            for d in range(EACH):
                cells = rng.integers(0, 1 << 20, (SIDE, SIDE), dtype="<i4")
                data = group.create_dataset(
                    f"field{d:02}", data=cells, chunks=(CHUNK, CHUNK), compression="gzip",
                    compression_opts=1, shuffle=True,
                )
                data.attrs["units"] = "K"


class Bench:
    """The file, the simulated cloud, and all systems."""

    def __init__(self, stack: ExitStack, settings: Settings, report: Report):
        self.report = report
        self.settings = settings
        self.runs = 1 if settings.quick else 3
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=OUT, prefix="h5remote-"))
        self.folder = Path(folder)
        self.local = self.folder / "many.h5"
        write_file(self.local, settings.seed)
        self.sim = stack.enter_context(Simulator(PRESET))
        self.url = f"s3://{BUCKET}/many.h5"
        self.cache = self.folder / "cache"
        self.environment = self.sim.environment | {
            "HSBENCH_REFERENCES": str(self.folder),
            "XDG_CACHE_HOME": str(self.cache),
        }
        self.upload()
        self.make_references()
        self.workers: dict[str, Worker] = {OURS: stack.enter_context(ours(self.environment))}
        for name in PEERS:
            self.workers[name] = stack.enter_context(peer(name, self.environment))
        for worker in self.workers.values():
            report.versions |= worker.ask("versions")
        self.queries, self.truth = self.draw()
        self.lines: list[list[Any]] = []

    def upload(self) -> None:
        import s3fs

        fs = s3fs.S3FileSystem(
            key=self.environment["AWS_ACCESS_KEY_ID"],
            secret=self.environment["AWS_SECRET_ACCESS_KEY"],
            endpoint_url=self.environment["AWS_ENDPOINT_URL"],
        )
        fs.put_file(str(self.local), self.url)

    def make_references(self) -> None:
        """In processes of their own, as somebody else would have done it."""
        for name in REFERENCES:
            out = self.folder / f"{name}.json"
            command = [sys.executable, "-m", "hsbench.references", name, str(self.local), self.url]
            done = subprocess.run(
                [*command, str(out)], env=os.environ | self.environment, capture_output=True, text=True
            )
            if done.returncode != 0:
                last = (done.stderr.strip().splitlines() or ["no reason"])[-1]
                self.report.note(f"{name} makes no references: {last[:300]}")

    def draw(self) -> tuple[list[dict[str, Any]], bytes]:
        rng = np.random.default_rng(self.settings.seed + 1)
        queries, truth = [], []
        with h5py.File(self.local) as file:
            for number in rng.choice(GROUPS * EACH, 100, replace=False):
                name = f"run{number // EACH:02}/field{number % EACH:02}"
                start = [int(x) for x in rng.integers(0, SIDE - BOX, 2)]
                box = [[at, at + BOX] for at in start]
                queries.append({"dataset": name, "box": box})
                truth.append(file[name][tuple(slice(*side) for side in box)].tobytes())
        return queries, b"".join(truth)

    def floors(self) -> tuple[float, float]:
        """(one after another, as one query): the chunks that each box touches, and nothing else."""
        apart, total = 0.0, 0
        with h5py.File(self.local) as file:
            for query in self.queries:
                data = file[query["dataset"]].id
                touched = 0
                for i in range(data.get_num_chunks()):
                    info = data.get_chunk_info(i)
                    inside = all(
                        at < side[1] and at + CHUNK > side[0]
                        for at, side in zip(info.chunk_offset, query["box"])
                    )
                    touched += info.size if inside else 0
                apart += LATENCY + touched / TOTAL
                total += touched
        return apart, LATENCY + total / TOTAL

    def measure(self, what: str, ask: Callable[[str], float | None], systems: tuple[str, ...], floor: float | None) -> dict[str, float]:
        self.report.say(f"h5remote: {what}")
        counted: dict[str, dict[str, Any]] = {}

        def once(system: str) -> float | None:
            try:
                self.sim.reset()
                seconds = ask(system)
                counted[system] = self.sim.meter()
                return seconds
            except Failed as reason:
                if system == OURS:
                    raise Unusable(f"hyperslab fails at {what}: {reason}") from reason
                self.report.note(f"{system} cannot do {what}: {reason}")
                return None

        attempts = {system: (lambda s=system: once(s)) for system in systems}
        times = {
            name: spread.median
            for name, spread in interleave(attempts, self.runs, warm=0 if what == "first open" else 1).items()
        }
        for system in systems:
            if system in times:
                meter = counted[system]
                row = {
                    "row": what, "system": system, "seconds": times[system],
                    "requests": meter["get"] + meter["head"], "bytes": meter["bytes_out"],
                    "floor": floor,
                }
                self.report.rows.append(row)
                self.lines.append([what, system, times[system], row["requests"], row["bytes"], floor])
        return times

    def open(self, system: str) -> float | None:
        """A first open: each time in a process that knows nothing."""
        worker = self.workers[system]
        worker.stop()
        # What an earlier run kept of the file would make this one a second open.
        shutil.rmtree(self.cache, ignore_errors=True)
        worker.ask("versions")
        answer = worker.ask("walk", url=self.url)
        if answer["datasets"] != GROUPS * EACH:
            raise Unusable(f"{system} sees {answer['datasets']} datasets.")
        return answer["seconds"]

    def boxes(self, system: str, together: bool) -> float | None:
        out = self.folder / "answer"
        worker = self.workers[system]
        worker.stop()
        worker.ask("versions")
        opened = worker.ask("open_file", url=self.url)
        answer = worker.ask(
            "query_names", url=self.url, queries=self.queries, together=together, path=str(out)
        )
        if out.read_bytes() != self.truth:
            raise Unusable(f"{system} read wrong cells.")
        return opened["seconds"] + answer["seconds"]


def run(settings: Settings, report: Report) -> None:
    build()
    OUT.mkdir(exist_ok=True)
    with ExitStack() as stack:
        bench = Bench(stack, settings, report)
        apart, together = bench.floors()
        opened = bench.measure("first open", bench.open, (OURS, *PEERS), None)
        boxes = bench.measure(
            "100 boxes, one after another", lambda s: bench.boxes(s, False), (OURS, *PEERS), apart
        )
        one = bench.measure("100 boxes, one query", lambda s: bench.boxes(s, True), (OURS,), together)
        report.table(["row", "system", "seconds", "requests", "bytes", "floor"], bench.lines)
    h5py_boxes = boxes["h5py+s3fs"]
    for name, figure, goal, holds in (
        ("first open: h5py ÷ ours", opened["h5py+s3fs"] / opened[OURS], "at least 5", lambda x: x >= 5),
        ("one after another: h5py ÷ ours", h5py_boxes / boxes[OURS], "at least 3", lambda x: x >= 3),
        ("one after another: ours ÷ floor", boxes[OURS] / apart, "at most 1.25", lambda x: x <= 1.25),
        ("as one query: h5py ÷ ours", h5py_boxes / one[OURS], "at least 10", lambda x: x >= 10),
    ):
        report.show(name, round(figure, 2), goal, holds(figure))
    for name in REFERENCES:
        if name in boxes:
            ratio = boxes[name] / boxes[OURS]
            report.show(f"one after another: {name} ÷ ours", round(ratio, 2), "above 1", ratio > 1)
