"""Random indexing expressions in Python against NumPy, on six stored forms: results and errors.

The expressions are drawn as those of the tests are (tests/python/expressions.py): integers, slices with
any step, ellipses, new axes, integer arrays and masks, and now and then something that NumPy refuses.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile

from ..harness import BENCH, OUT, ROOT, Report, Settings
from ..process import BUCKET, Simulator, build_python


def run(settings: Settings, report: Report) -> None:
    build_python()
    OUT.mkdir(exist_ok=True)
    total = 2_000 if settings.quick else 20_000
    with tempfile.TemporaryDirectory(dir=OUT, prefix="pyindex-") as folder, Simulator("unshaped") as sim:
        surroundings = os.environ | sim.environment
        surroundings["PYTHONPATH"] = f"{ROOT / 'python'}:{ROOT / 'tests' / 'python'}:{ROOT / 'tests'}:{BENCH}"
        command = [str(BENCH / ".venv-hdf5" / "bin" / "python"), "-m", "hsbench.pyindexes"]
        command += [folder, f"s3://{BUCKET}/pyindex", str(total), str(settings.seed)]
        done = subprocess.run(command, env=surroundings, cwd=BENCH, stdout=subprocess.PIPE, text=True, check=True)
    said = json.loads(done.stdout)
    report.rows.append(said)
    report.table(["stored form", "compared", "equal"], [[n, f["compared"], f["equal"]] for n, f in said["forms"].items()])
    for line in said["different"][:20]:
        report.note(line)
    report.note(f"{said['errors']} of {total} expressions are errors in NumPy, and here.")
    different = len(said["different"])
    report.show("expressions that differ", different, "0", different == 0)
    report.show("stored forms", len(said["forms"]), "6", len(said["forms"]) == 6)
