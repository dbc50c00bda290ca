"""Throughput at a fixed query size from 64 GB to 2 TB, and with a stale profile (figure 12).

Arrays are computed by the simulator, int32 in chunks of 2048² (16 MiB), 131,072 columns wide and
ever longer. A query is a horizontal box of 64 MB in 64 chunks. Then the network changes under a
profile that was measured before: bandwidth of 20 to 125 MB/s, latency of 5 to 150 ms; Hyperslab
reads on in one session, which refines the profile, beside one that is frozen and the forced modes.
"""

from __future__ import annotations

import random
import statistics
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ..cloud.boxes import Query
from ..cloud.contenders import OURS, SECRET, Contender, Field
from ..cloud.rounds import Rounds, Score, Target
from ..harness import OUT, Report, Settings
from ..process import Simulator, build, measure_profile

PRESET = "bench"
CHUNK = 2048
COLUMNS = 131_072
ROWS = 122
# Gigabytes, as the paper has them: 2³⁰ bytes.
SIZES = (64, 128, 256, 512, 1024, 2048)
BANDWIDTHS = (20e6, 40e6, 80e6, 125e6)
LATENCIES = (5.0, 20.0, 50.0, 90.0, 150.0)
STALE = "hyperslab, stale profile, refined"
FROZEN = "hyperslab, stale profile, frozen"
FORCED = ("get", "range-merge", "function")
LEVEL = 0.10


def computed(size: int) -> dict[str, Any]:
    """An array of so many gigabytes."""
    rows = size * (1 << 30) // (COLUMNS * 4)
    return {"prefix": f"scale/zarr/{size}", "shape": [rows, COLUMNS], "chunks": [CHUNK, CHUNK]}


def target(size: int) -> Target:
    return Target("scale", [str(size)], "int32", [], [computed(size)["shape"]])


def draw(size: int, columns: int, count: int, seed: int, turn: int) -> list[Query]:
    """Horizontal boxes anywhere in the array."""
    rng = random.Random(f"{seed}/{size}/{columns}/{turn}")
    rows = computed(size)["shape"][0]
    starts = [rng.randrange(rows - ROWS + 1) for _ in range(count)]
    return [{"box": [[start, start + ROWS], [0, columns]]} for start in starts]


def speed(score: Score, query_bytes: int) -> list[float]:
    """Megabytes of wanted cells a second, round by round."""
    return [score.queries * query_bytes / seconds / 1e6 for seconds in score.seconds]


class Scale:
    """The simulated cloud and the two experiments."""

    def __init__(self, stack: ExitStack, settings: Settings, report: Report):
        self.settings, self.report = settings, report
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=OUT, prefix="scale-")))
        arrays = [computed(size) for size in SIZES]
        self.sim = stack.enter_context(
            Simulator(PRESET, prices="aws", function_secret=SECRET, computed=arrays)
        )
        self.network = self.sim.admin("GET", "network")
        profile = folder / "profile.toml"
        report.say("scale: measuring the profile")
        measure_profile(self.sim, SECRET, profile, 10 if settings.quick else 40)
        report.details["profile"] = profile.read_text()
        self.field = Field(stack, self.sim, report, profile)

    def sizes(self) -> None:
        """Must show 7."""
        columns = COLUMNS // 8 if self.settings.quick else COLUMNS
        mine = self.field.add_ours(OURS, planner="global")
        rounds = Rounds(self.sim, self.report, 3 if self.settings.quick else 7)
        query_bytes = ROWS * columns * 4
        wanted = [size for size in SIZES if self.settings.wants(f"{size} GB")]
        scores: dict[int, dict[str, Score]] = {size: {} for size in wanted}
        order = random.Random(self.settings.seed)
        for turn in range(rounds.warm + rounds.measured):
            # Sizes take turns too, so that a busy moment of the machine meets all of them.
            for size in order.sample(wanted, len(wanted)):
                queries = draw(size, columns, 3, self.settings.seed, turn)
                rounds.one(f"{size} GB", mine, target(size), queries, scores[size], turn)
        lines, medians = [], []
        for size in wanted:
            speeds = speed(scores[size][OURS], query_bytes)
            medians.append(statistics.median(speeds))
            lines.append(self.line(f"{size} GB", OURS, scores[size][OURS], speeds))
        if not medians:
            return
        self.report.table(["array", "MB/s", "(min–max)", "requests/query", "MB/query"], lines)
        spread = 1 - min(medians) / max(medians)
        self.report.show(
            "throughput from 64 GB to 2 TB: 1 − slowest ÷ fastest",
            round(spread, 3),
            f"at most {LEVEL}",
            spread <= LEVEL and len(medians) == len(SIZES),
        )

    def line(self, row: str, system: str, score: Score, speeds: list[float]) -> list[Any]:
        """Keeps a row and returns its line."""
        self.report.rows.append(
            {
                "row": row,
                "system": system,
                "megabytes_per_second": speeds,
                "seconds": score.seconds,
                "queries_per_round": score.queries,
                "requests_per_query": score.requests,
                "bytes_per_query": score.bytes,
            }
        )
        spread = f"{min(speeds):.1f}–{max(speeds):.1f}"
        return [row, statistics.median(speeds), spread, score.requests, score.bytes / 1e6]

    def stale(self) -> None:
        """Figure 12 (b) and (c)."""
        named = [self.field.add_ours(mode, planner=mode) for mode in FORCED]
        refined = self.field.add_ours(STALE, planner="global")
        refined.new_session = False
        frozen = self.field.add_ours(FROZEN, planner="global", frozen=True)
        everyone = [refined, frozen, *named]
        lines = []
        for bandwidth in BANDWIDTHS[:: 3 if self.settings.quick else 1]:
            connection = min(bandwidth, self.network["connection_bandwidth"])
            change = {"total_bandwidth": bandwidth, "connection_bandwidth": connection}
            lines += self.changed(f"{bandwidth / 1e6:g} MB/s", change, everyone)
        for millis in LATENCIES[:: 4 if self.settings.quick else 1]:
            change = {"latency": {"kind": "constant", "millis": millis}}
            lines += self.changed(f"{millis:g} ms", change, everyone)
        if lines:
            header = ["network", "system", "MB/s", "(min–max)", "÷ best forced"]
            self.report.table(header, lines)

    def changed(
        self, name: str, change: dict[str, Any], everyone: list[Contender]
    ) -> list[list[Any]]:
        """One network that the profile does not know."""
        if not self.settings.wants(name):
            return []
        self.report.say(f"scale: {name}")
        columns = 32_768 if not self.settings.quick else 8192
        rounds = Rounds(self.sim, self.report, 2 if self.settings.quick else 4, warm=2)
        self.sim.set_network(self.network | change)
        seed = self.settings.seed
        scores = rounds.run(
            name, everyone, target(64), lambda turn: draw(64, columns, 1, seed, turn)
        )
        self.sim.set_network(self.network)
        best = min(scores[mode].per_query for mode in FORCED if mode in scores)
        lines = []
        for system, score in scores.items():
            speeds = speed(score, ROWS * columns * 4)
            row = self.line(f"{name} {system}", system, score, speeds)
            lines.append([name, system, *row[1:3], score.per_query / best])
        return lines


def run(settings: Settings, report: Report) -> None:
    build()
    OUT.mkdir(exist_ok=True)
    with ExitStack() as stack:
        scale = Scale(stack, settings, report)
        scale.sizes()
        scale.stale()
    report.note("MB/s are megabytes of wanted cells a second; every cell is checked.")
    report.note("÷ best forced: seconds of a query ÷ those of the fastest forced mode there.")
