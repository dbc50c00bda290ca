"""Damaged HDF5 files for ten minutes: no panic, no hang, no vast allocation.

Seeds are files of the corpus, small ones of every kind. Each round changes some bytes of one, walks
what is left and reads every dataset. Findings are kept in `bench/out/fuzz`.
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess

from ..corpus import cases
from ..harness import OUT, Report, Settings, Unusable
from ..process import DRIVER, build

LARGEST_SEED = 256 << 10
# Of the whole process, so that a vast allocation ends it and not its neighbours.
MEMORY = 8 << 30


def run(settings: Settings, report: Report) -> None:
    build()
    folder = OUT / "fuzz"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    seeds = 0
    for case in cases():
        path = folder / f"{case.name}.h5"
        try:
            case.write(path)
        except Exception:  # noqa: BLE001  (what a writer cannot do is no seed)
            continue
        if path.stat().st_size > LARGEST_SEED:
            path.unlink()
        else:
            seeds += 1
    seconds = 30 if settings.quick else 600
    report.say(f"h5fuzz: {seeds} seeds, {seconds} s")
    command = [str(DRIVER), "fuzz", str(folder), str(seconds), str(settings.seed)]
    limit = (MEMORY, MEMORY)
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit),
    )
    if done.returncode == 0:
        found = json.loads(done.stdout)
    elif (folder / "current.bin").exists():
        what = f"the process ended with code {done.returncode}: {done.stderr.strip()[-300:]}"
        finding = {"what": what, "file": str(folder / "current.bin")}
        found = {"rounds": None, "opened": None, "findings": [finding]}
    else:
        raise Unusable(f"the fuzzer ended with code {done.returncode}: {done.stderr.strip()[-300:]}")
    report.rows.append({"seeds": seeds, "seconds": seconds, **found})
    report.table(
        ["seeds", "seconds", "files read", "of them opened", "findings"],
        [[seeds, seconds, found["rounds"], found["opened"], len(found["findings"])]],
    )
    for finding in found["findings"]:
        report.note(f"{finding['what']}: {finding['file']}")
    report.show("findings", len(found["findings"]), "0", not found["findings"])
