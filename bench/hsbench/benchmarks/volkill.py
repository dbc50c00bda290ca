"""An HDF5 program that is killed at its k-th request: does its file open, with all that was flushed?

The program (hsbench/volwriter.py) writes through the connector to a simulated S3, and says after each
flush that it is done. Its k-th request hangs, and it is killed then, for 200 values of k. Afterwards
the file is opened by h5py through the connector, and by zarr-python; every step that was flushed must
be there with all its values.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ..harness import BENCH, OUT, Report, Settings, Unusable
from ..process import BUCKET, Simulator, build, connector_environment

HANG = {"kind": "hang", "methods": [], "pattern": None}


def killed_at(sim: Simulator, k: int, url: str, environment: dict[str, str]) -> list[str]:
    """Runs the writer, kills it at its k-th request; returns what it said."""
    rule = HANG | {"trigger": {"nth": k}}
    sim.admin("PUT", "faults", {"rules": [rule], "seed": 0, "hang_seconds": 60.0})
    sim.reset()
    process = subprocess.Popen(
        [sys.executable, "-m", "hsbench.volwriter", url],
        env=os.environ | environment, cwd=BENCH, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )
    while process.poll() is None and not any(sim.meter()["faults"].values()):
        time.sleep(0.005)
    process.kill()
    assert process.stdout
    said = process.stdout.read().split()
    process.wait()
    sim.admin("PUT", "faults", {"rules": [], "seed": 0, "hang_seconds": 60.0})
    return said


def run(settings: Settings, report: Report) -> None:
    build()
    OUT.mkdir(exist_ok=True)
    wanted = 20 if settings.quick else 200
    with tempfile.TemporaryDirectory(dir=OUT, prefix="volkill-") as folder, Simulator("unshaped") as sim:
        environment = sim.environment | connector_environment(Path(folder) / "plugins")
        # How many requests the whole program makes.
        said = killed_at(sim, 1_000_000, f"s3://{BUCKET}/whole.h5", environment)
        requests = sum(sim.meter()[kind] for kind in ("get", "head", "put", "list", "delete"))
        if said[-1:] != ["closed"]:
            raise Unusable(f"the writer does not end: it said {said}.")
        wrong = []
        steps: dict[str, int] = {}
        for number in range(wanted):
            k = 1 + number * requests // wanted
            url = f"s3://{BUCKET}/killed{number}.h5"
            said = killed_at(sim, k, url, environment)
            last = said[-1] if said else "nothing"
            steps[last] = steps.get(last, 0) + 1
            command = [sys.executable, "-m", "hsbench.volreader", url, *said]
            done = subprocess.run(command, env=os.environ | environment, cwd=BENCH, capture_output=True, text=True)
            if done.returncode != 0:
                wrong.append([k, last, (done.stderr.strip().splitlines() or ["no reason"])[-1][:120]])
        report.rows += [{"k": k, "flushed": last, "wrong": why} for k, last, why in wrong]
    report.table(["last flushed step", "times"], sorted(steps.items()))
    if wrong:
        report.table(["k", "last flushed", "what is wrong"], wrong[:30])
    report.note(f"The whole program makes {requests} requests.")
    report.show("files that do not open or lack a flushed value", f"{len(wrong)} of {wanted}", "0", not wrong)
