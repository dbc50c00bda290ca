"""Random selections against the naive model of the index crate: none may differ."""

from __future__ import annotations

import re
import time

from ..harness import Report, Settings, Unusable
from ..process import run_example


def run(settings: Settings, report: Report) -> None:
    count = 5_000 if settings.quick else 100_000
    start = time.perf_counter()
    done = run_example("oracle", str(count), str(settings.seed), check=False)
    seconds = time.perf_counter() - start
    found = re.search(r"(\d+) selections from seed \d+: (\d+) differences", done.stdout)
    if found is None:
        reason = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise Unusable(f"the oracle of hyperslab-index did not run: {reason}")
    compared, different = map(int, found.groups())
    report.rows.append({"selections": compared, "different": different, "seconds": seconds})
    report.table(
        ["selections", "different", "seconds with the build"], [[compared, different, seconds]]
    )
    for line in done.stderr.splitlines()[:20]:
        report.note(line)
    report.show("selections that differ from the model", different, "0", different == 0)
    report.show("selections compared", compared, f"at least {count}", compared >= count)
