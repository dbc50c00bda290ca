"""Boxes of arrays on a simulated S3: by cost, by every forced mode, by the peers, beside the floor.

Rows: {1 MiB, 16 MiB chunks} × {horizontal, vertical, small} of a 16384² int32 array (figure 7 of
ArrayMorph), raw and as shards; then the two applications of figure 14, raw, zstd and as shards.
Boxes are 1 % of the array (10.7 MB), or 21 × 21 cells; a round is 3 of the former or 20 of the
latter, one after another, and every round has others. The network has 20 ms to the first byte,
90 MB/s a connection and 125 MB/s in all; prices are those of `prices/aws.toml`. The profile was
measured once by `hyperslab profile`. The floor of a query is one covering range a chunk: a round
trip plus the larger of all bytes ÷ total bandwidth and largest range ÷ connection bandwidth.
"""

from __future__ import annotations

import statistics
import tempfile
from contextlib import ExitStack
from pathlib import Path

from ..cloud import boxes, floor, streams
from ..cloud.boxes import Query
from ..cloud.contenders import MONEY, OURS, PEERS, SECRET, Field
from ..cloud.goals import Goals, Row, fewer_bytes
from ..cloud.layouts import Layout, write_cells
from ..cloud.rounds import Rounds, Target
from ..cloud.tables import show_row
from ..harness import OUT, Report, Settings
from ..process import Simulator, build, measure_profile

PRESET = "bench"
SHARD_READERS = ("tensorstore", "zarr-python-64", "zarr+zarrs-64")
STREAM_PEERS = ("tiledb", "tensorstore", "zarr+zarrs-64")
STREAMS = [(name, packing) for name in ("bert", "camera") for packing in ("raw", "zstd", "shards")]
# What a quick run leaves out: it takes a minute by itself.
SLOW_PEERS = ("hsds", "parquet")


class Cloud:
    """The simulated cloud, its contenders, and the rows."""

    def __init__(self, stack: ExitStack, settings: Settings, report: Report):
        self.settings, self.report = settings, report
        self.side = 4096 if settings.quick else 16384
        self.counts = {"horizontal": 3, "vertical": 3, "small": 20}
        if settings.quick:
            self.counts = {"horizontal": 2, "vertical": 2, "small": 5}
        self.folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(dir=OUT, prefix="cloud-"))
        )
        self.sim = stack.enter_context(
            Simulator(PRESET, prices="aws", place="same-region", function_secret=SECRET)
        )
        profile = self.folder / "profile.toml"
        report.say("cloud: measuring the profile")
        measure_profile(self.sim, SECRET, profile, 10 if settings.quick else 40)
        report.details["profile"] = profile.read_text()
        report.details["network"] = self.sim.network
        self.field = Field(stack, self.sim, report, profile)
        self.rounds = Rounds(self.sim, report, 1 if settings.quick else 5)
        self.goals = Goals(report)

    def rows(self, layout: Layout) -> list[str]:
        """The workloads that were asked for."""
        return [w for w in boxes.WORKLOADS if self.settings.wants(f"{layout} {w}")]

    def synthetic(self, layout: Layout, cells: Path, systems: list[str]) -> None:
        """All workloads on one layout."""
        wanted = self.rows(layout)
        if not wanted:
            return
        self.report.say(f"cloud: writing {layout}")
        self.field.load("synthetic", layout.name, layout, cells, systems)
        self.sim.set_network(PRESET)
        for workload in wanted:
            self.workload(layout, workload, cells, systems)
        self.field.clear("synthetic")

    def workload(self, layout: Layout, workload: str, cells: Path, systems: list[str]) -> None:
        name = f"{layout} {workload}"
        self.report.say(f"cloud: {name}")
        shape = list(layout.shape)
        target = Target("synthetic", [layout.name], layout.data_type, [str(cells)], [shape])
        count, seed = self.counts[workload], self.settings.seed
        contenders = [self.field.contenders[s] for s in systems if s in self.field.contenders]

        def draw(turn: int) -> list[Query]:
            return boxes.draw(workload, shape, count, seed, turn)

        scores = self.rounds.run(name, contenders, target, draw)
        asked = [
            query["box"]
            for turn in range(self.rounds.warm, self.rounds.warm + self.rounds.measured)
            for query in draw(turn)
        ]
        # Shards are compared with what they would be as plain chunks.
        ranges = [floor.covering(box, layout.chunk, layout.cell) for box in asked]
        lowest = statistics.fmean(floor.BENCH.seconds(sizes) for sizes in ranges)
        flat = [size for sizes in ranges for size in sizes]
        show_row(self.report, name, scores, lowest, flat, len(asked))
        mib = layout.chunk_bytes / (1 << 20)
        self.goals.add(Row(name, workload, mib, layout.inner is not None, scores, lowest))

    def stream(self, name: str, packing: str) -> None:
        """One application of figure 14."""
        title = f"{name} {packing}"
        if not self.settings.wants(title):
            return
        self.report.say(f"cloud: writing {title}")
        stream = streams.make(name, packing, self.settings.quick)
        peers = [p for p in STREAM_PEERS if not (p == "tiledb" and packing == "shards")]
        files = []
        for number, (array, layout) in enumerate(stream.layouts.items()):
            file = self.folder / f"{name}-{array}"
            if not file.exists():
                seed = self.settings.seed + number
                write_cells(file, layout.shape, layout.data_type, seed, stream.top)
            files.append(str(file))
            self.field.load("stream", array, layout, file, peers)
        self.sim.set_network(PRESET)
        self.report.say(f"cloud: {title}")
        layouts = list(stream.layouts.values())
        target = Target(
            "stream",
            list(stream.layouts),
            layouts[0].data_type,
            files,
            [list(layout.shape) for layout in layouts],
        )
        count = 12

        def draw(turn: int) -> list[Query]:
            return stream.draw(count, self.settings.seed, turn)

        known = self.field.contenders
        contenders = [known[s] for s in (OURS, MONEY, *peers) if s in known]
        scores = self.rounds.run(title, contenders, target, draw)
        asked = [
            query
            for turn in range(self.rounds.warm, self.rounds.warm + self.rounds.measured)
            for query in draw(turn)
        ]
        ranges = [
            floor.covering(q["box"], layouts[q["array"]].chunk, layouts[q["array"]].cell)
            for q in asked
        ]
        lowest = statistics.fmean(floor.BENCH.seconds(sizes) for sizes in ranges)
        flat = [size for sizes in ranges for size in sizes]
        show_row(self.report, title, scores, lowest, flat, len(asked))
        useful = statistics.fmean(
            boxes.cells(q["box"]) * layouts[q["array"]].cell for q in asked
        )
        self.report.note(f"{title}: a query wants {useful / 1e6:.2f} MB on average.")
        if packing == "raw":
            fewer_bytes(self.report, name, scores)
        self.field.clear("stream")


def run(settings: Settings, report: Report) -> None:
    build()
    OUT.mkdir(exist_ok=True)
    with ExitStack() as stack:
        cloud = Cloud(stack, settings, report)
        cloud.field.add_planners()
        for name in PEERS:
            if not (settings.quick and name in SLOW_PEERS):
                cloud.field.add_peer(name)
        shape = (cloud.side, cloud.side)
        plain = [Layout(shape, (chunk, chunk)) for chunk in (512, 2048)]
        shards = [Layout(shape, (chunk, chunk), inner=(128, 128)) for chunk in (512, 2048)]
        if any(map(cloud.rows, plain + shards)):
            cells = cloud.folder / "cells"
            write_cells(cells, shape, "int32", settings.seed, (1 << 31) - 1)
            for layout in plain:
                cloud.synthetic(layout, cells, list(cloud.field.contenders))
            for layout in shards:
                cloud.synthetic(layout, cells, [OURS, *SHARD_READERS])
            cells.unlink()
        for name, packing in STREAMS:
            if packing == "raw" or not settings.quick:
                cloud.stream(name, packing)
        cloud.goals.state()
    report.note("Queries a minute: median of the rounds; a round's queries run one after another.")
    report.note("queries/$: by the price book aws; in the same region traffic is free.")
    report.note("Requests are those that reach the store, and calls of the function.")
    report.note("The simulator shares the machine's cores with the client under test.")
    if settings.quick:
        report.note("A quick run has neither HSDS nor Parquet, and the streams on raw chunks only.")
    else:
        report.note("HSDS's nodes run beside the client; its bytes are those it fetched from S3.")
    report.note("Shards have inner chunks of 128 × 128; their floor is that of plain chunks.")
