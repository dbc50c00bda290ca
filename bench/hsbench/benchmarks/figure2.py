"""Method × provider on a 4096² int32 array in chunks of 1 MiB (figure 2).

Each provider is a simulated cloud with the network and the function of its preset and the prices of
its book; methods are forced: Get, Range (one range a chunk) and Lambda (one call a chunk).
"""

from __future__ import annotations

import statistics
import tempfile
from contextlib import ExitStack
from pathlib import Path

from ..cloud import boxes
from ..cloud.bill import book
from ..cloud.contenders import SECRET, Field
from ..cloud.layouts import Layout, write_cells
from ..cloud.rounds import Rounds, Target
from ..harness import OUT, Report, Settings
from ..process import Simulator, build

PROVIDERS = ("aws", "azure", "gcp")
METHODS = {"get": "Get", "range-merge": "Range", "function": "Lambda"}
LAYOUT = Layout((4096, 4096), (512, 512))


def run(settings: Settings, report: Report) -> None:
    build()
    OUT.mkdir(exist_ok=True)
    measured = 1 if settings.quick else 3
    ratios, lines = [], []
    with ExitStack() as outer:
        folder = outer.enter_context(tempfile.TemporaryDirectory(dir=OUT, prefix="figure2-"))
        cells = Path(folder) / "cells"
        write_cells(cells, LAYOUT.shape, "int32", settings.seed, (1 << 31) - 1)
        for provider in PROVIDERS:
            if not settings.wants(provider):
                continue
            with ExitStack() as stack:
                sim = stack.enter_context(
                    Simulator(provider, prices=provider, function_secret=SECRET)
                )
                # The built-in profile: a forced method asks it for limits only.
                field = Field(stack, sim, report, provider, provider)
                for method in METHODS:
                    field.add_ours(method, planner=method)
                field.load("figure2", LAYOUT.name, LAYOUT, cells, [])
                sim.set_network(provider)
                rounds = Rounds(sim, report, measured)
                target = Target(
                    "figure2", [LAYOUT.name], "int32", [str(cells)], [list(LAYOUT.shape)]
                )
                for workload in boxes.WORKLOADS:
                    report.say(f"figure2: {provider} {workload}")
                    count = 2 if settings.quick else 5
                    scores = rounds.run(
                        f"{provider} {workload}",
                        list(field.contenders.values()),
                        target,
                        lambda turn: boxes.draw(
                            workload, list(LAYOUT.shape), count, settings.seed, turn
                        ),
                    )
                    prices = book(provider)
                    for method in METHODS:
                        if method not in scores:
                            continue
                        score = scores[method]
                        bill = score.dollars(prices, "internet")
                        minute = statistics.median(score.per_minute())
                        lines.append(
                            [provider, workload, METHODS[method], minute, 1 / bill]
                            + [score.bytes / 1e6, score.requests]
                        )
                        report.rows.append(
                            {
                                "row": f"{provider} {workload} {METHODS[method]}",
                                "queries_per_minute": score.per_minute(),
                                "dollars_per_query_internet": bill,
                                "bytes_per_query": score.bytes,
                                "requests_per_query": score.requests,
                            }
                        )
                    if {"get", "range-merge"} <= scores.keys():
                        ratio = scores["range-merge"].per_query / scores["get"].per_query
                        ratios.append(ratio)
    header = ["provider", "boxes", "method", "queries/min", "queries/$ internet"]
    report.table([*header, "MB/query", "requests/query"], lines)
    report.note("The paper's finding: Range is never worse than Get, and no method always wins.")
    if ratios:
        worst = max(ratios)
        report.show(
            "slowest Range ÷ Get", round(worst, 2), "at most 1.1 (vertical: equal)", worst <= 1.1
        )
