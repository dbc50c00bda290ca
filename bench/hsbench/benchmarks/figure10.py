"""φ from 0 to 10⁵ and infinity on vertical boxes, client in the region and out of it (figure 10).

16384² int32 in chunks of 2048² (16 MiB), computed by the simulator; boxes are 1 % of the array.
"""

from __future__ import annotations

import statistics
import tempfile
from contextlib import ExitStack
from pathlib import Path

from ..cloud import boxes
from ..cloud.bill import book
from ..cloud.contenders import SECRET, Field
from ..cloud.rounds import Rounds, Target
from ..harness import OUT, Report, Settings
from ..process import Simulator, build, measure_profile

PRESET = "bench"
CHUNK = 2048
PLACES = ("same-region", "internet")
VALUES = ("0", "1", "10", "100", "1e3", "1e4", "1e5", "inf")


def run(settings: Settings, report: Report) -> None:
    build()
    OUT.mkdir(exist_ok=True)
    side = 4096 if settings.quick else 16384
    values = VALUES[::3] + VALUES[-1:] if settings.quick else VALUES
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=OUT, prefix="figure10-")))
        array = {"prefix": "figure10/zarr/array", "shape": [side, side], "chunks": [CHUNK, CHUNK]}
        sim = stack.enter_context(
            Simulator(PRESET, prices="aws", function_secret=SECRET, computed=[array])
        )
        profile = folder / "profile.toml"
        measure_profile(sim, SECRET, profile, 10 if settings.quick else 30)
        field = Field(stack, sim, report, profile)
        for place in PLACES:
            for phi in values:
                field.add_ours(f"{place} φ={phi}", planner="global", phi=phi, place=place)
        rounds = Rounds(sim, report, 2 if settings.quick else 5)
        scores = rounds.run(
            "vertical boxes",
            list(field.contenders.values()),
            Target("figure10", ["array"], "int32", [], [[side, side]]),
            lambda turn: boxes.draw("vertical", [side, side], 2, settings.seed, turn),
        )
    prices = book("aws")
    for place in PLACES:
        key = place.replace("-", "_")
        lines, bills = [], []
        for phi in values:
            score = scores[f"{place} φ={phi}"]
            bill = score.dollars(prices, key)
            calls = score.mean(lambda meter: meter["function"]["calls"])
            bills.append(bill)
            minute = statistics.median(score.per_minute())
            lines.append([phi, minute, 1 / bill, score.bytes / 1e6, score.requests, calls])
            report.rows.append(
                {
                    "row": f"{place} φ={phi}",
                    "seconds": score.seconds,
                    "queries_per_minute": minute,
                    "dollars_per_query": bill,
                    "bytes_per_query": score.bytes,
                    "requests_per_query": score.requests,
                    "calls_per_query": calls,
                }
            )
        print(f"{place}\n")
        header = ["φ", "queries/min", "queries/$", "MB/query", "requests/query", "calls/query"]
        report.table(header, lines)
        report.show(
            f"{place}: bill at φ = ∞ ÷ smallest bill of all φ",
            round(bills[-1] / min(bills), 3),
            "at most 1.02",
            bills[-1] <= 1.02 * min(bills),
        )
    report.note("The bill of a client in the region has no traffic, so there calls are what costs.")
