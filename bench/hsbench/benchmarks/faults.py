"""Queries against a cloud where 5 % of requests fail in seeded ways, and against one that is down.

Runs the example `faults` of hyperslab-testkit: random boxes of raw, compressed and sharded arrays,
planned for time, for money and by forced modes, while requests answer 503 or 500, are reset,
truncated or hang, and calls of the function crash, hang, answer other bytes or a web page. Every
answer is compared with a naive model. Then reads with a deadline from a store that hangs, refuses
or resets everything.
"""

from __future__ import annotations

import json

from ..harness import Report, Settings
from ..process import run_example

# How late a timer may be on a busy machine.
SLACK = 0.25


def run(settings: Settings, report: Report) -> None:
    queries = 500 if settings.quick else 10_000
    done = run_example("faults", str(queries), "1")
    found = json.loads(done.stdout.strip().splitlines()[-1])
    header = ["queries", "requests", "failed_requests", "calls", "fallbacks", "seconds"]
    row = [found[name] for name in header]
    row[-1] = round(row[-1], 1)
    report.table([name.replace("_", " ") for name in header], [row])
    report.rows = [found]
    for wrong in found["wrong"]:
        report.note(wrong)
    report.show(
        "queries that were wrong or failed",
        f"{len(found['wrong'])} of {queries}",
        f"0 of {queries}",
        not found["wrong"],
    )
    share = found["failed_requests"] / max(found["requests"], 1)
    report.show("requests that failed on purpose", f"{share:.1%}", "about 5 %", share > 0.03)
    beyond = found["beyond_deadline_seconds"]
    report.show(
        "a store that is down: longest time beyond the deadline",
        f"{beyond * 1e3:.0f} ms",
        f"at most {SLACK * 1e3:.0f} ms",
        beyond <= SLACK,
    )
