"""Thousands of generated HDF5 programs, run natively and through the connector: do they see the same?

Each program (hsbench/volprogram.py) makes a file and then does 25 steps at random: it creates datasets
of all kinds, writes and reads by random selections, resizes, describes, links, moves, copies and
removes, flushes and opens again, and tells everything that it sees. Natively it works on a local file,
through the connector on a simulated S3.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ..harness import BENCH, OUT, Report, Settings, Unusable
from ..process import BUCKET, Simulator, build, connector_environment

LANES = 2


def run_programs(prefix: str, first: int, count: int, environment: dict[str, str]) -> dict[int, list[str]]:
    """What the programs say, by number. One that ends its process says so, and the next go on."""
    said: dict[int, list[str]] = {}
    while count > 0:
        command = [sys.executable, "-m", "hsbench.volprogram", prefix, str(first), str(count)]
        done = subprocess.run(command, env=os.environ | environment, cwd=BENCH, capture_output=True, text=True)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        said |= {line["seed"]: line["said"] for line in lines}
        first, count = first + len(lines), count - len(lines)
        if count > 0:
            said[first] = [f"ends with {done.returncode}"]
            first, count = first + 1, count - 1
    return said


def run(settings: Settings, report: Report) -> None:
    build()
    OUT.mkdir(exist_ok=True)
    total = 200 if settings.quick else 4000
    first = settings.seed * 1_000_000
    kinds: Counter[str] = Counter()
    different: list[list[str]] = []
    compared = seen = crashed = 0
    with tempfile.TemporaryDirectory(dir=OUT, prefix="volidentity-") as folder, Simulator("unshaped") as sim:
        ours = sim.environment | connector_environment(Path(folder) / "plugins")

        def lane(number: int) -> tuple[dict[int, list[str]], dict[int, list[str]]]:
            start, count = first + number * total // LANES, total // LANES
            local = Path(folder) / f"lane{number}"
            local.mkdir()
            return (
                run_programs(str(local), start, count, {}),
                run_programs(f"s3://{BUCKET}/lane{number}", start, count, ours),
            )

        with ThreadPoolExecutor(LANES) as pool:
            for native, remote in pool.map(lane, range(LANES)):
                if not native:
                    raise Unusable("no program ran.")
                for seed, expected in native.items():
                    compared += 1
                    seen += len(expected)
                    for line in expected:
                        kinds[line.split(" ")[0].split("/")[0].rstrip("0123456789")] += 1
                    found = remote.get(seed, ["did not run"])
                    crashed += expected[0].startswith("ends with")
                    if found != expected:
                        pairs = zip(found + ["…"] * len(expected), expected + ["…"] * len(found))
                        one, other = next((a, b) for a, b in pairs if a != b)
                        different.append([str(seed), one[:110], other[:110]])
    report.rows += [{"program": s, "connector": a, "native": b} for s, a, b in different]
    report.table(["what programs did", "times"], kinds.most_common(24))
    if different:
        report.table(["program", "through the connector", "natively"], different[:40])
    report.note(f"{compared} programs of 25 steps told {seen} things; {crashed} end libhdf5 itself by a signal.")
    report.show("programs that see something else", f"{len(different)} of {compared}", "0", not different and compared >= total)
