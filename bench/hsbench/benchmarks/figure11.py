"""Chunk sizes of 2 KiB to 64 MiB, square and shaped like the queries (figure 11).

16384² int32, computed by the simulator in chunks of every size; boxes of figure 7. Shaped chunks
have the sides' ratio of the query, in powers of two, as the rule of Sarawagi and Stonebraker (1994)
gives. tensorstore reads the same objects whole; TileDB cannot read computed ones.
"""

from __future__ import annotations

import math
import statistics
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from ..cloud import boxes, floor
from ..cloud.bill import book
from ..cloud.contenders import OURS, SECRET, Field
from ..cloud.rounds import Rounds, Score, Target
from ..harness import OUT, Report, Settings
from ..process import Simulator, build, measure_profile

PRESET = "bench"
SIDE = 16384
# log2 of the cells of a chunk: 2 KiB, 16 KiB, 128 KiB, 1 MiB, 8 MiB, 64 MiB.
SIZES = (9, 12, 15, 18, 21, 24)
# log2 of a query's width ÷ height: 164 × 16384 and back.
ASPECTS = {"horizontal": 6, "vertical": -6, "small": 0}
NEVER_SLOWER = 1.07


def sides(log_cells: int, aspect: int) -> list[int]:
    """A chunk of so many cells with about this ratio of its sides."""
    top = int(math.log2(SIDE))
    height = max(0, min(top, (log_cells - aspect) // 2))
    width = min(top, log_cells - height)
    return [1 << (log_cells - width), 1 << width]


def arrays(sizes: tuple[int, ...]) -> dict[str, dict[str, Any]]:
    """Every array by its name."""
    found = {}
    for size in sizes:
        for aspect in sorted(set(ASPECTS.values())):
            chunks = sides(size, aspect)
            name = "x".join(map(str, chunks))
            found[name] = {
                "prefix": f"figure11/zarr/{name}",
                "shape": [SIDE, SIDE],
                "chunks": chunks,
            }
    return found


def run(settings: Settings, report: Report) -> None:
    build()
    OUT.mkdir(exist_ok=True)
    sizes = SIZES[1::3] if settings.quick else SIZES
    lines, ratios = [], []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=OUT, prefix="figure11-")))
        sim = stack.enter_context(
            Simulator(
                PRESET, prices="aws", function_secret=SECRET, computed=list(arrays(sizes).values())
            )
        )
        profile = folder / "profile.toml"
        measure_profile(sim, SECRET, profile, 10 if settings.quick else 30)
        cells = folder / "cells"
        write_closed_form(cells)
        field = Field(stack, sim, report, profile)
        field.add_ours(OURS, planner="global")
        field.add_peer("tensorstore")
        rounds = Rounds(sim, report, 1 if settings.quick else 3)
        for workload, aspect in ASPECTS.items():
            shapes = {(size, a) for size in sizes for a in (0, aspect)}
            for size, a in sorted(shapes):
                chunks = sides(size, a)
                name = f"{workload} {'square' if a == 0 else 'shaped'} {(4 << size) >> 10} KiB"
                if not settings.wants(name):
                    continue
                report.say(f"figure11: {name}")
                count = 1 if workload != "small" else 5

                def draw(turn: int) -> list[boxes.Query]:
                    return boxes.draw(workload, [SIDE, SIDE], count, settings.seed, turn)

                array = "x".join(map(str, chunks))
                scores = rounds.run(
                    name,
                    list(field.contenders.values()),
                    Target("figure11", [array], "int32", [str(cells)], [[SIDE, SIDE]]),
                    draw,
                )
                turns = range(rounds.warm, rounds.warm + rounds.measured)
                lowest = statistics.fmean(
                    floor.BENCH.seconds(floor.covering(query["box"], chunks, 4))
                    for turn in turns
                    for query in draw(turn)
                )
                lines.append(row(report, name, array, scores, lowest))
                if "tensorstore" in scores:
                    ratio = scores[OURS].per_query / scores["tensorstore"].per_query
                    ratios.append((ratio, name))
    header = ["chunks", "shape", "ours: queries/min", "queries/$ internet", "MB/query"]
    header += ["requests/query", "× floor", "tensorstore: queries/min", "MB/query"]
    report.table(header, lines)
    if ratios:
        worst, name = max(ratios)
        report.show(
            f"ours ÷ tensorstore, worst chunk size ({name})",
            round(worst, 3),
            f"at most {NEVER_SLOWER}",
            worst <= NEVER_SLOWER,
        )


def row(
    report: Report, name: str, array: str, scores: dict[str, Score], lowest: float
) -> list[Any]:
    """Keeps the figures of one chunk shape; returns its line."""
    mine, theirs = scores[OURS], scores.get("tensorstore")
    prices = book("aws")
    report.rows.append(
        {
            "row": name,
            "chunk_shape": array,
            "floor_seconds_per_query": lowest,
            "systems": {
                system: {
                    "seconds": score.seconds,
                    "queries_per_round": score.queries,
                    "bytes_per_query": score.bytes,
                    "requests_per_query": score.requests,
                    "dollars_per_query_internet": score.dollars(prices, "internet"),
                }
                for system, score in scores.items()
            },
        }
    )
    return [
        name,
        array,
        statistics.median(mine.per_minute()),
        1 / mine.dollars(prices, "internet"),
        mine.bytes / 1e6,
        mine.requests,
        mine.per_query / lowest,
        statistics.median(theirs.per_minute()) if theirs else None,
        theirs.bytes / 1e6 if theirs else None,
    ]


def write_closed_form(path: Path) -> None:
    """The cells of a computed array (`crates/sim/src/procedural/zarr.rs`), for checking a peer."""
    with path.open("wb") as file:
        for start in range(0, SIDE, 512):
            index = np.arange(start * SIDE, (start + 512) * SIDE, dtype=np.uint64)
            low, high = index.astype(np.uint32), (index >> np.uint64(32)).astype(np.uint32)
            mixed = (low ^ high * np.uint32(0x85EBCA6B)) * np.uint32(0x9E3779B1)
            file.write((mixed ^ (mixed >> np.uint32(15))).astype("<u4").tobytes())
