"""h5py through the connector, beside our own API on the same objects, h5py over s3fs, and HSDS.

Rows: {1 MiB, 16 MiB chunks} × {horizontal, vertical, small} of a 16384² int32 dataset, and the two
applications of figure 14 of ArrayMorph, on the simulated S3 of `cloud`: 20 ms to the first byte,
90 MB/s a connection and 125 MB/s in all. h5py wrote the datasets through the connector; our own API
reads the very same objects with the same profile and function. Last, calls on a local file with and
without the connector.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from ..cloud import boxes, streams
from ..cloud.boxes import Query
from ..cloud.contenders import CONNECTOR, FILES, OURS, SECRET, Field
from ..cloud.layouts import Layout, write_cells
from ..cloud.rounds import Rounds, Target
from ..harness import BENCH, OUT, Report, Settings, Unusable
from ..process import Simulator, build, connector_environment, measure_profile

PRESET = "bench"
S3FS, HSDS = "h5py+s3fs", "hsds"
COUNTS = {"horizontal": 3, "vertical": 3, "small": 20}


class Bench:
    """The simulated cloud, who reads from it, and what they took."""

    def __init__(self, stack: ExitStack, settings: Settings, report: Report):
        self.settings, self.report = settings, report
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=OUT, prefix="vol-")))
        self.sim = stack.enter_context(
            Simulator(PRESET, prices="aws", place="same-region", function_secret=SECRET)
        )
        profile = self.folder / "profile.toml"
        report.say("vol: measuring the profile")
        measure_profile(self.sim, SECRET, profile, 10 if settings.quick else 40)
        self.field = Field(stack, self.sim, report, profile)
        ours = self.field.add_ours(OURS, planner="global")
        ours.copy_of, ours.suffix = CONNECTOR, FILES[CONNECTOR]
        text = f"profile={profile};prices=aws;place=same-region;function={self.sim.function}"
        environment = connector_environment(self.folder / "plugins", text)
        self.field.add_peer(CONNECTOR, environment | {"HYPERSLAB_FUNCTION_SECRET": SECRET})
        self.field.add_peer(S3FS)
        if not settings.quick:
            self.field.add_peer(HSDS)
        self.rounds = Rounds(self.sim, report, 1 if settings.quick else 5)
        self.lines: list[list[object]] = []
        self.ratios: dict[str, dict[str, float]] = {}

    def row(self, name: str, layouts: dict[str, Layout], files: list[Path], draw) -> None:
        """One row: everybody answers the same queries."""
        self.report.say(f"vol: {name}")
        self.sim.set_network(PRESET)
        shapes = [list(layout.shape) for layout in layouts.values()]
        data_type = next(iter(layouts.values())).data_type
        target = Target("vol", list(layouts), data_type, [str(file) for file in files], shapes)
        scores = self.rounds.run(name, list(self.field.contenders.values()), target, draw)
        mine = scores[OURS].per_query
        self.ratios[name] = {who: score.per_query / scores[CONNECTOR].per_query for who, score in scores.items()}
        for who, score in scores.items():
            self.lines.append([name, who, score.per_query, score.requests, score.bytes / 1e6, score.per_query / mine])
            self.report.rows.append({"row": name, "system": who, "seconds": score.seconds, "queries": score.queries})

    def load(self, layouts: dict[str, Layout], files: list[Path]) -> None:
        for (array, layout), file in zip(layouts.items(), files):
            self.field.load("vol", array, layout, file, list(self.field.contenders))

    def boxes(self) -> None:
        side = 4096 if self.settings.quick else 16384
        cells = self.folder / "cells"
        write_cells(cells, (side, side), "int32", self.settings.seed, (1 << 31) - 1)
        for chunk in (512, 2048):
            layout = Layout((side, side), (chunk, chunk))
            wanted = [w for w in boxes.WORKLOADS if self.settings.wants(f"{layout} {w}")]
            if not wanted:
                continue
            self.report.say(f"vol: writing {layout}")
            layouts = {layout.name: layout}
            self.load(layouts, [cells])
            for workload in wanted:
                def draw(turn: int, workload: str = workload) -> list[Query]:
                    return boxes.draw(workload, [side, side], COUNTS[workload], self.settings.seed, turn)

                self.row(f"{layout} {workload}", layouts, [cells], draw)
            self.field.clear("vol")
        cells.unlink()

    def stream(self, name: str) -> None:
        if not self.settings.wants(name):
            return
        stream = streams.make(name, "raw", self.settings.quick)
        files = []
        for number, (array, layout) in enumerate(stream.layouts.items()):
            file = self.folder / f"{name}-{array}"
            write_cells(file, layout.shape, layout.data_type, self.settings.seed + number, stream.top)
            files.append(file)
        self.report.say(f"vol: writing {name}")
        self.load(stream.layouts, files)
        self.row(name, stream.layouts, files, lambda turn: stream.draw(12, self.settings.seed, turn))
        self.field.clear("vol")
        for file in files:
            file.unlink()

    def goals(self) -> None:
        """What was to be shown of the rows that were run."""
        for name, ratios in self.ratios.items():
            slower = 1 / ratios[OURS]
            self.report.show(f"{name}: connector ÷ our own API", round(slower, 3), "at most 1.05", slower <= 1.05)
            kind = name.rsplit(" ", 1)[-1]
            if S3FS in ratios and kind in COUNTS:
                least = 1.7 if kind == "small" else 3.0
                self.report.show(f"{name}: h5py over s3fs ÷ connector", round(ratios[S3FS], 2), f"at least {least}", ratios[S3FS] >= least)
            if HSDS in ratios:
                self.report.show(f"{name}: HSDS ÷ connector", round(ratios[HSDS], 2), "at least 3", ratios[HSDS] >= 3)


def pass_through(folder: Path, settings: Settings, report: Report) -> None:
    """What the connector adds to calls on a local file."""
    runs = 2 if settings.quick else 5
    times: dict[str, dict[str, list[float]]] = {}
    for _ in range(runs):
        for way, environment in (("native", {}), ("connector", connector_environment(folder / "plugins"))):
            command = [sys.executable, "-m", "hsbench.volcalls", str(folder / "calls.h5")]
            done = subprocess.run(command, env=os.environ | environment, cwd=BENCH, capture_output=True, text=True)
            if done.returncode != 0:
                raise Unusable(f"calls cannot be timed: {done.stderr[-300:]}")
            for call, nanoseconds in json.loads(done.stdout).items():
                times.setdefault(call, {}).setdefault(way, []).append(nanoseconds)
    lines = []
    for call, ways in times.items():
        native, ours = (statistics.median(ways[way]) for way in ("native", "connector"))
        lines.append([call, native, ours, ours - native])
        report.rows.append({"call": call, **ways})
        report.show(f"{call}: nanoseconds added", round(ours - native), "at most 1000", ours - native <= 1000)
    report.table(["call on a local file", "native ns", "connector ns", "added"], lines)


def run(settings: Settings, report: Report) -> None:
    build()
    OUT.mkdir(exist_ok=True)
    with ExitStack() as stack:
        bench = Bench(stack, settings, report)
        bench.boxes()
        for name in ("bert", "camera"):
            bench.stream(name)
        header = ["row", "who", "s a query", "requests", "MB", "÷ our own API"]
        report.table(header, bench.lines)
        bench.goals()
        if settings.wants("calls"):
            pass_through(bench.folder, settings, report)
    report.note("Times are medians of rounds; a round's queries run one after another.")
