"""What every benchmark shares: settings, interleaved runs, the report with its must-show lines.

Invariant: a must-show line that was not measured does not hold.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from . import machine
from .table import render

BENCH = Path(__file__).resolve().parent.parent
ROOT = BENCH.parent
OUT = BENCH / "out"


class Unusable(Exception):
    """The benchmark cannot run here; one sentence says why and what to do."""


@dataclass
class Settings:
    """What the command line asked for."""

    quick: bool = False
    only: str | None = None
    seed: int = 1

    def wants(self, row: str) -> bool:
        """True if a row of this name was asked for."""
        return self.only is None or self.only in row


@dataclass
class Spread:
    """Several measurements of one thing, in seconds."""

    runs: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.runs)

    def __str__(self) -> str:
        return f"{self.median:.3f} ({min(self.runs):.3f}–{max(self.runs):.3f})"


@dataclass
class MustShow:
    """A claim that the benchmark has to show."""

    name: str
    figure: Any
    goal: str
    holds: bool


# A system that takes so many times the median of all is far from the best, whatever the spread.
FAR = 3.0
# Systems this near to the fastest are run more often, since a median of few runs decides little.
NEAR = 1.4
MORE = 2
# What the benchmarks call ourselves.
OURS = "hyperslab"


def interleave(
    systems: dict[str, Callable[[], float | None]],
    runs: int,
    warm: int = 1,
    floor: str = "plain",
    more: int = MORE,
) -> dict[str, Spread]:
    """Runs all systems in turn, `warm` rounds unmeasured and `runs` rounds measured.

    Each round has an order of its own, drawn from a fixed seed, so that none always follows the
    same one: what a system leaves behind (freed inodes, dirty pages) costs the next one. A system
    that answers None is left out from then on: it cannot do this. One that is `FAR` behind in every
    round up to the first measured one is measured only once. Those that end within `NEAR` of the
    fastest, if there are several, run `more` times as often again, and so do we, who are compared
    with them; the `floor` is none of them.
    """
    times: dict[str, list[float]] = {name: [] for name in systems}
    draw = random.Random(len(systems))
    far = set(systems)
    for turn in range(warm + (1 + more) * runs):
        if turn == warm + runs:
            medians = {n: statistics.median(t) for n, t in times.items() if t and n != floor}
            limit = NEAR * min(medians.values(), default=0.0)
            near = [name for name, median in medians.items() if median <= limit]
            far = set(systems) - {*near, OURS} if {*near} != {OURS} else set(systems)
        order = list(systems)
        draw.shuffle(order)
        taken: dict[str, float] = {}
        for name in order:
            if name not in times or (turn > warm and name in far):
                continue
            seconds = systems[name]()
            if seconds is None:
                del times[name]
                continue
            taken[name] = seconds
            if turn >= warm:
                times[name].append(seconds)
        if turn <= warm and taken:
            limit = FAR * statistics.median(taken.values())
            far &= {name for name, seconds in taken.items() if seconds > limit}
    return {name: Spread(runs) for name, runs in times.items()}


@dataclass
class Report:
    """Collects rows and must-show lines, prints them, and writes `bench/out/NAME.json`."""

    name: str
    settings: Settings
    rows: list[dict[str, Any]] = field(default_factory=list)
    must_show: list[MustShow] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    started: float = field(default_factory=time.time)

    def say(self, text: str) -> None:
        """Tells how far it is; not part of the result."""
        print(text, file=sys.stderr, flush=True)

    def note(self, text: str) -> None:
        """A sentence that belongs below the table."""
        self.notes.append(text)

    def show(self, name: str, figure: Any, goal: str, holds: bool) -> None:
        """States a figure, its goal, and whether it holds."""
        self.must_show.append(MustShow(name, figure, goal, bool(holds)))

    def table(self, header: Sequence[str], lines: Sequence[Sequence[Any]]) -> None:
        """Prints a table."""
        print(render(header, lines), end="\n\n", flush=True)

    def finish(self) -> int:
        """Prints notes and must-show lines, writes the file; returns the exit code."""
        for text in self.notes:
            print(f"- {text}")
        if self.notes:
            print()
        lines = [[m.name, m.figure, m.goal, "yes" if m.holds else "NO"] for m in self.must_show]
        if lines:
            self.table(["must show", "figure", "goal", "holds"], lines)
        document = {
            "name": self.name,
            "settings": asdict(self.settings),
            "seed": self.settings.seed,
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.started)),
            "seconds": round(time.time() - self.started, 1),
            "machine": machine.describe(),
            "versions": machine.versions(ROOT) | self.versions,
            "rows": self.rows,
            "must_show": [asdict(m) for m in self.must_show],
            "notes": self.notes,
            **self.details,
        }
        OUT.mkdir(exist_ok=True)
        # A part must not pass for the whole.
        part = "" if self.settings.only is None else ".part"
        path = OUT / f"{self.name}{part}.json"
        path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
        print(f"written to {path.relative_to(ROOT)}")
        return 0 if self.must_show and all(m.holds for m in self.must_show) else 1
