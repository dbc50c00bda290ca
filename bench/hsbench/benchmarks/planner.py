"""The planners: `global` against the paper's and against exhaustive search, and planning times."""

from __future__ import annotations

import json

from ..harness import Report, Settings
from ..process import run_example


def run(settings: Settings, report: Report) -> None:
    queries, small = (1_000, 200) if settings.quick else (10_000, 2_000)
    done = run_example("planner", str(queries), str(small), str(settings.seed))
    found = json.loads(done.stdout)
    report.rows.append(found)
    gains = [found[f"gain_{name}"] for name in ("geometric", "median", "most")]
    report.table(
        ["queries", "costlier than paper", "equal", "gain: mean", "median", "most"],
        [[found["queries"], found["costlier"], found["equal"], *gains]],
    )
    report.table(
        ["small instances", "within 1 % of exhaustive", "worst"],
        [[found["small"], found["within"], found["worst"]]],
    )
    report.table(
        ["planned", "milliseconds", "requests"],
        [
            ["10,000 chunks", found["chunks_ms"], found["chunks_requests"]],
            ["1,000,000 runs", found["runs_ms"], found["runs_requests"]],
            ["a box of 21 × 21", found["small_ms"], found["small_requests"]],
        ],
    )
    report.note("The mean gain is geometric: the paper's cost ÷ ours.")
    report.show("queries on which paper is cheaper", found["costlier"], "0", found["costlier"] == 0)
    report.show("queries compared", queries, "at least 10000", queries >= 10_000 or settings.quick)
    worst = round(found["worst"], 4)
    report.show("worst cost ÷ exhaustive", worst, "at most 1.01", found["worst"] <= 1.01)
    chunks, runs = round(found["chunks_ms"], 1), round(found["runs_ms"], 1)
    report.show("milliseconds for 10,000 chunks", chunks, "under 20", chunks < 20)
    report.show("milliseconds for 1,000,000 runs", runs, "under 200", runs < 200)
