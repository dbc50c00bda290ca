"""A writer killed at its k-th request, for 200 values of k: everything reads as before or after.

Runs the example `kill` of hyperslab-testkit, which kills a writer on every store it knows and looks
at what is left.
"""

from __future__ import annotations

import re

from ..harness import Report, Settings, Unusable
from ..process import run_example

# store, requests, kills, copies behind, violations
LINE = re.compile(r"(\S.*?)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)")


def run(settings: Settings, report: Report) -> None:
    count = 20 if settings.quick else 200
    done = run_example("kill", str(count), check=False)
    lines = []
    for line in done.stdout.splitlines():
        if (found := LINE.fullmatch(line.strip())) is not None:
            store, *numbers = found.groups()
            lines.append([store, *map(int, numbers)])
        elif line.startswith("  "):
            report.note(line.strip())
    if not lines:
        reason = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise Unusable(f"the example `kill` of hyperslab-testkit did not run: {reason}")
    header = ["store", "requests", "kills", "copies behind", "violations"]
    report.table(header, lines)
    report.rows = [dict(zip(header, line)) for line in lines]
    for store, _, kills, _, violations in lines:
        report.show(
            f"{store}: kills that left something wrong",
            f"{violations} of {kills}",
            f"0 of {count}",
            violations == 0 and kills >= count and done.returncode == 0,
        )
