"""Plans that were not chosen: `splits=k` for many k, executed, beside the chosen one (figure 9).

One chunk of 2048² int32 (16 MiB) is asked for a horizontal, a vertical and a small box. Each plan's
time and bill is measured; the chosen plan (φ = 0) is compared with the fastest of all.
"""

from __future__ import annotations

import random
import tempfile
from contextlib import ExitStack
from pathlib import Path

from ..cloud.bill import book
from ..cloud.boxes import Query
from ..cloud.contenders import FORCED, OURS, SECRET, Field
from ..cloud.rounds import Rounds, Score, Target
from ..harness import OUT, Report, Settings
from ..process import Simulator, build, measure_profile

PRESET = "bench"
SIDE = 16384
CHUNK = 2048
WITHIN = 1.15


def ask(workload: str, rng: random.Random) -> Query:
    """A box inside one chunk."""
    row, column = (CHUNK * rng.randrange(SIDE // CHUNK) for _ in range(2))
    band = 164
    at = rng.randrange(CHUNK - band)
    match workload:
        case "horizontal":
            box = [[row + at, row + at + band], [column, column + CHUNK]]
        case "vertical":
            box = [[row, row + CHUNK], [column + at, column + at + band]]
        case _:
            box = [[row + at, row + at + 21], [column + at, column + at + 21]]
    return {"box": box}


def numbers(quick: bool) -> list[int]:
    """Numbers of splits: every one at first, then ever farther apart."""
    if quick:
        return [0, 1, 4, 16, 64, 512]
    return [0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256, 512, 1024, 2047]


def run(settings: Settings, report: Report) -> None:
    build()
    OUT.mkdir(exist_ok=True)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=OUT, prefix="figure9-")))
        array = {"prefix": "figure9/zarr/array", "shape": [SIDE, SIDE], "chunks": [CHUNK, CHUNK]}
        sim = stack.enter_context(
            Simulator(PRESET, prices="aws", function_secret=SECRET, computed=[array])
        )
        profile = folder / "profile.toml"
        measure_profile(sim, SECRET, profile, 10 if settings.quick else 30)
        field = Field(stack, sim, report, profile)
        field.add_ours(OURS, planner="global")
        for mode in [*FORCED, *(f"splits={k}" for k in numbers(settings.quick))]:
            field.add_ours(mode, planner=mode)
        rounds = Rounds(sim, report, 2 if settings.quick else 5)
        target = Target("figure9", ["array"], "int32", [], [[SIDE, SIDE]])
        for workload in ("horizontal", "vertical", "small"):
            if not settings.wants(workload):
                continue
            report.say(f"figure9: {workload}")

            def draw(turn: int) -> list[Query]:
                rng = random.Random(f"{settings.seed}/{workload}/{turn}")
                return [ask(workload, rng) for _ in range(2)]

            scores = rounds.run(workload, list(field.contenders.values()), target, draw)
            show(report, workload, scores)


def show(report: Report, workload: str, scores: dict[str, Score]) -> None:
    """The table of one workload, and how far the chosen plan is from the fastest."""
    prices = book("aws")
    lines = []
    for name, score in sorted(scores.items(), key=lambda item: item[1].per_query):
        bills = [score.dollars(prices, place) * 1e6 for place in ("same_region", "internet")]
        millis = score.per_query * 1e3
        lines.append([name, millis, *bills, score.requests, score.bytes / 1e6])
        report.rows.append(
            {
                "row": f"{workload} {name}",
                "seconds_per_query": score.per_query,
                "seconds": score.seconds,
                "dollars_per_query": bills[0] / 1e6,
                "dollars_per_query_internet": bills[1] / 1e6,
                "requests_per_query": score.requests,
                "bytes_per_query": score.bytes,
            }
        )
    print(f"{workload}\n")
    report.table(
        ["plan", "ms/query", "µ$/query", "µ$/query internet", "requests/query", "MB/query"], lines
    )
    best = min(score.per_query for score in scores.values())
    ratio = scores[OURS].per_query / best
    report.show(
        f"{workload}: chosen ÷ fastest executed plan",
        round(ratio, 3),
        f"at most {WITHIN}",
        ratio <= WITHIN,
    )
