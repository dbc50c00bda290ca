"""Reads beside writers of an array with two replicas: none is older than what was acknowledged.

Runs the example `replicas` of hyperslab-testkit on the simulated S3: an array by rows, with replicas by
columns and by tiles. Two sessions write tiles of their own, which share objects with the other's, so
that their marks meet; two others read rows, columns and boxes. Every cell holds the number of the write
that made it, and a read may return no number below the last one that was acknowledged before the read
began.
"""

from __future__ import annotations

import json

from ..harness import Report, Settings
from ..process import run_example


def run(settings: Settings, report: Report) -> None:
    reads = 1_000 if settings.quick else 10_000
    done = run_example("replicas", str(reads), "1")
    found = json.loads(done.stdout.strip().splitlines()[-1])
    header = ["reads", "by_replica", "writes", "seconds"]
    row = [found[name] for name in header]
    row[-1] = round(row[-1], 1)
    report.table([name.replace("_", " ") for name in header], [row])
    report.rows = [found]
    for old in found["old"]:
        report.note(old)
    report.show(
        "reads that returned an old value",
        f"{found['old_reads']} of {reads}",
        f"0 of {reads}",
        found["old_reads"] == 0,
    )
    share = found["by_replica"] / reads
    report.show("reads that a replica answered", f"{share:.0%}", "some", share > 0.02)
    report.show("writes acknowledged meanwhile", str(found["writes"]), "some", found["writes"] > 0)
