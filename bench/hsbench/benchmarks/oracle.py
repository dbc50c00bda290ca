"""Our plan against the best forced plan: the whole grid in virtual time, 20 of its cells over HTTP.

A cell is workload × provider × chunk size × place × φ; its figure is the cost T + φF of our plan ÷
that of the best forced plan (get, range-merge, range-fetch, function, function-whole). The grid is
executed by the example `plan_oracle` of hyperslab-sim in the simulator's virtual time. The cells in
real time are plain chunks of a computed 16384² int32 array on the simulated cloud, with a profile
that `hyperslab profile` measured; all planners answer the same boxes, interleaved, and a cost is
the measured time and the metered bill of a query, the median of all rounds.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..cloud import bill, boxes
from ..cloud.contenders import SECRET, Field
from ..cloud.rounds import Rounds, Score, Target
from ..harness import OUT, Report, Settings
from ..process import Simulator, build, measure_profile, run_example

FORCED = ("get", "range-merge", "range-fetch", "function", "function-whole")
BESIDE = ("paper",)
MEDIAN, WORST = 1.03, 1.15
SIDE = 16384
KIB = 1 << 10
# Workload, KiB of a chunk, and the (place, φ) of its cells, by provider.
REAL: dict[str, list[tuple[str, int, list[tuple[str, str]]]]] = {
    "aws": [
        ("horizontal", 1024, [("same-region", "0"), ("internet", "10000")]),
        ("vertical", 16384, [("same-region", "0"), ("internet", "100"), ("internet", "inf")]),
        ("small", 4096, [("same-region", "0"), ("internet", "inf")]),
    ],
    "azure": [
        ("horizontal", 16384, [("same-region", "0"), ("same-region", "100000")]),
        ("vertical", 1024, [("same-region", "0"), ("internet", "10000"), ("same-region", "inf")]),
        ("small", 64, [("internet", "1")]),
    ],
    "gcp": [
        ("horizontal", 4096, [("same-region", "0"), ("internet", "inf")]),
        ("vertical", 16384, [("same-region", "0"), ("internet", "10000"), ("same-region", "100000")]),
        ("small", 16384, [("same-region", "0"), ("internet", "100000")]),
    ],
}


@dataclass(frozen=True)
class Group:
    """Cells that share provider, workload and chunks, and therefore their forced plans."""

    provider: str
    workload: str
    kib: int
    cells: tuple[tuple[str, str], ...]

    @property
    def array(self) -> str:
        return f"{self.kib}k"

    @property
    def side(self) -> int:
        """Cells of 4 bytes along a chunk."""
        return {64: 128, 1024: 512, 4096: 1024, 16384: 2048}[self.kib]

    def __str__(self) -> str:
        return f"{self.workload} raw {self.provider} {self.kib} KiB"


def groups(settings: Settings) -> Iterator[Group]:
    """All groups, or in a quick run those of one provider."""
    for provider, rows in REAL.items():
        if settings.quick and provider != "aws":
            continue
        for workload, kib, cells in rows:
            group = Group(provider, workload, kib, tuple(cells))
            if settings.wants(str(group)):
                yield group


def oracle(*arguments: str) -> dict[str, Any]:
    """Runs the grid, or a part of it, in virtual time."""
    return json.loads(run_example("plan_oracle", *arguments).stdout)


def virtual(settings: Settings, report: Report) -> None:
    """The whole grid in virtual time."""
    report.say("oracle: the grid in virtual time")
    arguments = ["--quick"] if settings.quick else []
    if settings.only is not None:
        arguments += ["--only", settings.only]
    found = oracle(*arguments)
    if not found["cells"]:
        return
    report.details["virtual"] = found
    header = ["provider", "workload", "cells", "median", "worst", "above 1.03", "to all: worst"]
    keys = ("provider", "workload", "cells", "median", "worst", "share_above_median_goal")
    report.table(header, [[*(row[key] for key in keys), row["worst_to_all"]] for row in found["by"]])
    lines = [worst_line(cell) for cell in found["worst_cells"]]
    report.table(["worst cells", "φ", "ratio", "ours", "best", "best forced"], lines)
    report.note(
        f"Virtual time: {found['cells']} cells, the mean of {found['seeds']} queries each; "
        f"{100 * found['share_above_median_goal']:.1f} % above {MEDIAN}, "
        f"{100 * found['share_above_worst_goal']:.1f} % above {WORST}."
    )
    report.note(
        "Planning is not part of virtual time. On this machine it took "
        f"{100 * found['planning_share_median']:.1f} % of a query's time in the median, and "
        f"{100 * found['planning_share_worst']:.0f} % at most."
    )
    goals(report, "virtual time", found["median"], found["worst"])


def worst_line(cell: dict[str, Any]) -> list[Any]:
    """A cell of the grid as a line of the table."""
    best = min(cell["forced"], key=lambda taken: taken["cost"])
    kind = "with function" if cell["function"] else "without function"
    name = f"{cell['workload']} {cell['coding']} {cell['provider']} {kind}"
    size = f"{cell['chunk_bytes'] // KIB} KiB {cell['place']}"
    took = [taken(cell["ours"]), taken(best)]
    return [f"{name} {size}", cell["phi"], cell["ratio"], *took, best["mode"]]


def taken(plan: dict[str, Any]) -> str:
    """What a plan took, and what the model thought."""
    asked = f"{plan['requests']:.0f}+{plan['calls']:.0f} requests"
    model = f"model {plan['estimated_seconds']:.3f} s"
    return f"{plan['seconds']:.3f} s, ${plan['dollars']:.2e}, {asked} ({model})"


def goals(report: Report, where: str, median: float, worst: float) -> None:
    """The two must-show lines."""
    for name, figure, goal in (("median", median, MEDIAN), ("worst", worst, WORST)):
        claim = f"{where}: ours ÷ best forced, {name}"
        report.show(claim, round(figure, 3), f"at most {goal}", figure <= goal)


class Real:
    """Cells of one provider over HTTP."""

    def __init__(
        self,
        stack: ExitStack,
        provider: str,
        mine: list[Group],
        settings: Settings,
        report: Report,
    ):
        self.settings, self.report, self.groups = settings, report, mine
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=OUT, prefix="oracle-"))
        sides = {group.array: group.side for group in mine}
        computed = [
            {"prefix": f"grid/zarr/{name}", "shape": [SIDE, SIDE], "chunks": [side, side]}
            for name, side in sides.items()
        ]
        self.sim = stack.enter_context(
            Simulator(provider, prices=provider, function_secret=SECRET, computed=computed)
        )
        profile = Path(folder) / "profile.toml"
        report.say(f"oracle: measuring the profile of {provider}")
        measure_profile(self.sim, SECRET, profile, 8 if settings.quick else 20)
        report.details.setdefault("profiles", {})[provider] = profile.read_text()
        self.prices = bill.book(provider)
        self.field = Field(stack, self.sim, report, profile, provider)
        for mode in FORCED + BESIDE:
            self.field.add_ours(mode, planner=mode)
        for place, phi in {cell for group in mine for cell in group.cells}:
            self.field.add_ours(f"{place} {phi}", planner="global", place=place, phi=phi)
        self.rounds = Rounds(self.sim, report, 3 if settings.quick else 5)

    def run(self, group: Group) -> list[dict[str, Any]]:
        """The cells of a group, as rows of the report."""
        self.report.say(f"oracle: {group} in real time")
        count = 10 if group.workload == "small" else 1
        names = [*FORCED, *BESIDE, *(f"{place} {phi}" for place, phi in group.cells)]
        target = Target("grid", [group.array], "int32", [], [[SIDE, SIDE]])
        shape, seed = [SIDE, SIDE], self.settings.seed
        scores = self.rounds.run(
            str(group),
            [self.field.contenders[name] for name in names],
            target,
            lambda turn: boxes.draw(group.workload, shape, count, seed, turn),
        )
        expected = self.expected(group)
        return [self.cell(group, place, phi, scores, expected) for place, phi in group.cells]

    def expected(self, group: Group) -> dict[str, float]:
        """Seconds of the forced plans in virtual time, on other boxes of the same kind."""
        found = oracle("--every", "--only", f"{group} function")["every"]
        return {plan["mode"]: plan["seconds"] for plan in found[0]["forced"]} if found else {}

    def cell(
        self, group: Group, place: str, phi: str, scores: dict[str, Score], expected: dict[str, float]
    ) -> dict[str, Any]:
        def cost(name: str) -> float:
            return statistics.median(self.costs(scores[name], place, float(phi)))

        mine = cost(f"{place} {phi}")
        forced = {name: cost(name) for name in FORCED if name in scores}
        best = min(forced, key=forced.__getitem__)
        seconds = {name: score.per_query for name, score in scores.items()}
        return {
            "row": f"{group} {place} φ = {phi}",
            "ratio": mine / forced[best],
            "best": best,
            "cost": mine,
            "forced": forced,
            "paper": cost("paper") if "paper" in scores else None,
            "seconds": {name: score.seconds for name, score in scores.items()},
            "dollars": {
                name: score.dollars(self.prices, place.replace("-", "_"))
                for name, score in scores.items()
            },
            "requests": {name: score.requests for name, score in scores.items()},
            "fallbacks": {name: score.fallbacks for name, score in scores.items()},
            "real_to_virtual": {
                name: seconds[name] / expected[name] for name in expected if name in seconds
            },
        }

    def costs(self, score: Score, place: str, phi: float) -> list[float]:
        """T + φF of a query, or F where only money counts, round by round."""
        where = place.replace("-", "_")
        bills = [bill.dollars(meter, self.prices, where) / score.queries for meter in score.meters]
        if phi == float("inf"):
            return bills
        times = [seconds / score.queries for seconds in score.seconds]
        return [seconds + phi * dollars for seconds, dollars in zip(times, bills)]


def real(settings: Settings, report: Report) -> None:
    """Some cells over HTTP."""
    chosen = list(groups(settings))
    if not chosen:
        return
    build()
    OUT.mkdir(exist_ok=True)
    rows: list[dict[str, Any]] = []
    for provider in dict.fromkeys(group.provider for group in chosen):
        mine = [group for group in chosen if group.provider == provider]
        with ExitStack() as stack:
            bench = Real(stack, provider, mine, settings, report)
            for group in mine:
                rows.extend(bench.run(group))
    report.rows.extend(rows)
    header = ["cell in real time", "ratio", "ours", "best forced", "its cost", "paper"]
    report.table(header, [real_line(row) for row in rows])
    shares = sorted(share for row in rows for share in row["real_to_virtual"].values())
    if shares:
        report.note(
            "Seconds of forced plans in real time ÷ virtual time: median "
            f"{statistics.median(shares):.2f} ({shares[0]:.2f}–{shares[-1]:.2f}); the boxes are "
            "others of the same kind."
        )
    ratios = [row["ratio"] for row in rows]
    goals(report, "real time", statistics.median(ratios), max(ratios))
    if settings.only is None and not settings.quick:
        report.show("cells in real time", len(rows), "at least 20", len(rows) >= 20)


def real_line(row: dict[str, Any]) -> list[Any]:
    """A cell in real time as a line of the table; costs are seconds, or dollars at φ = inf."""
    paper = None if row["paper"] is None else f"{row['paper']:.3g}"
    best = f"{row['forced'][row['best']]:.3g}"
    return [row["row"], row["ratio"], f"{row['cost']:.3g}", row["best"], best, paper]


def run(settings: Settings, report: Report) -> None:
    virtual(settings, report)
    real(settings, report)
