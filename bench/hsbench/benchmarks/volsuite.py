"""h5py's own test suite through the connector: on a simulated S3, and on local files.

The suite of each version of h5py runs three times, each time as `pytest --pyargs h5py`: natively, with
the connector on local files, and with its temporary folder mapped to a simulated S3. Of the last, those
tests count that pass natively and whose files reached the server; the requests of every test are
counted there, and a local HDF5 file in the mapped folder is a failure. Tests that look at what only a
local file has, and those that fail, are named with their reasons in docs/vol-gaps.md.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from ..harness import BENCH, OUT, ROOT, Report, Settings
from ..process import BUCKET, Simulator, build, connector_environment

VERSIONS = ("3.16.0", "3.15.1", "3.12.1")
GAPS = ROOT / "docs" / "vol-gaps.md"
GOAL = 0.98
# The first bytes of every HDF5 file.
SIGNATURE = b"\x89HDF\r\n\x1a\n"


def gaps() -> dict[str, list[re.Pattern[str]]]:
    """Patterns of the names of tests that the document lists, by heading."""
    found: dict[str, list[re.Pattern[str]]] = {}
    heading = ""
    for line in GAPS.read_text().splitlines():
        if line.startswith("## "):
            heading = line[3:]
        elif line.startswith("| `test_"):
            name = line.split("`")[1]
            pattern = re.escape(name).replace(r"\*", ".*")
            found.setdefault(heading, []).append(re.compile(pattern))
    return found


def listed(test: str, patterns: list[re.Pattern[str]]) -> bool:
    return any(pattern.fullmatch(test) for pattern in patterns)


def python_with(version: str) -> Path:
    """An environment with this version of h5py."""
    folder = BENCH / f".venv-h5py-{version}"
    python = folder / "bin" / "python"
    stamp = folder / "ready"
    if not stamp.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        wanted = [f"h5py=={version}", "numpy==2.3.4", "pytest==9.0.0", "pytest-mpi==0.6"]
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *wanted], check=True)
        stamp.touch()
    return python


def run_suite(python: Path, folder: Path, environment: dict[str, str]) -> list[dict[str, Any]]:
    """How every test ended."""
    results = folder.with_suffix(".jsonl")
    folder.mkdir()
    surroundings = os.environ | environment | {
        "TMPDIR": str(folder),
        "HSBENCH_SUITE": str(results),
        "PYTHONPATH": str(BENCH),
    }
    command = [str(python), "-m", "pytest", "--pyargs", "h5py", "-q", "-p", "no:cacheprovider"]
    command += ["-p", "hsbench.suiteplugin", f"--basetemp={folder}/basetemp"]
    with folder.with_suffix(".log").open("w") as log:
        subprocess.run(command, env=surroundings, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
    found = [json.loads(line) for line in results.read_text().splitlines()]
    # As the document names them, whatever folder pytest counts from.
    return [one | {"test": one["test"].rsplit("tests/", 1)[-1]} for one in found]


def hdf5_files(folder: Path) -> list[Path]:
    """Local HDF5 files, which there must not be."""
    def is_one(path: Path) -> bool:
        with path.open("rb") as file:
            return file.read(len(SIGNATURE)) == SIGNATURE

    return [path for path in folder.rglob("*") if path.is_file() and is_one(path)]


def run(settings: Settings, report: Report) -> None:
    build()
    OUT.mkdir(exist_ok=True)
    known = gaps()
    excluded, failing = known.get("Not for a store", []), known.get("Failing", [])
    lines, unnamed = [], []
    for version in VERSIONS[:1] if settings.quick else VERSIONS:
        if not settings.wants(version):
            continue
        python = python_with(version)
        report.say(f"volsuite: h5py {version}")
        with tempfile.TemporaryDirectory(dir=OUT, prefix="volsuite-") as place, Simulator("unshaped") as sim:
            folder = Path(place)
            plugins = folder / "plugins"
            native = {one["test"]: one for one in run_suite(python, folder / "native", {})}
            local = {one["test"]: one for one in run_suite(python, folder / "local", connector_environment(plugins))}
            mapped = folder / "mapped"
            settings_text = f"map={mapped}=s3://{BUCKET}/suite"
            environment = connector_environment(plugins, settings_text) | sim.environment
            environment["HSBENCH_METER"] = f"{sim.endpoint}/_sim/meter"
            remote = {one["test"]: one for one in run_suite(python, mapped, environment)}
            strays = hdf5_files(mapped)
        passing = {test for test, one in native.items() if one["outcome"] == "passed"}
        reached = {test for test in passing if remote.get(test, {}).get("requests", 0) > 0}
        counted = {test for test in reached if not listed(test, excluded)}
        failed = sorted(test for test in counted if remote[test]["outcome"] != "passed")
        others = sorted(
            test for test in passing - counted
            if remote.get(test, {}).get("outcome") != "passed" and not listed(test, excluded)
        )
        unnamed += [f"{version}: {test}" for test in failed + others if not listed(test, failing)]
        lost = sorted(test for test in passing if local.get(test, {}).get("outcome") != "passed")
        share = 1 - len(failed) / max(len(counted), 1)
        lines.append([version, len(native), len(passing), len(reached), len(counted), len(counted) - len(failed), f"{share:.2%}", len(passing) - len(lost)])
        report.rows.append({
            "version": version, "tests": len(native), "passing": len(passing), "reached": sorted(reached),
            "counted": len(counted), "failed": failed, "lost_locally": lost, "strays": [p.name for p in strays],
        })
        report.show(f"h5py {version}: of the tests on S3", f"{share:.4f}", f"at least {GOAL}", share >= GOAL)
        report.show(f"h5py {version}: local files", f"{len(passing) - len(lost)} of {len(passing)}", "all", not lost)
        report.show(f"h5py {version}: HDF5 files in the mapped folder", len(strays), "0", not strays)
        for test in lost:
            report.note(f"{version}: locally fails {test}")
    header = ["h5py", "tests", "pass natively", "reach the server", "count", "pass", "share", "pass locally"]
    report.table(header, lines)
    report.note("Exclusions and failures are named in docs/vol-gaps.md.")
    for test in unnamed:
        report.note(f"not named in docs/vol-gaps.md: {test}")
    report.show("failures without a reason in docs/vol-gaps.md", len(unnamed), "0", not unnamed)
