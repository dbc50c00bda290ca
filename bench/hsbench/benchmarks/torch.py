"""Training input for PyTorch from a simulated S3: our loader beside the others, and beside downloading first.

Two workloads, each a gigabyte of which a tenth is sampled in 3 epochs: crops of camera-trap images,
and rows of tokens as BERT has them (`hsbench/training/workloads.py`). Each system runs with 0, 1 and
2 workers, in a process of its own for each run; the clock starts when everything is imported, so it
covers opening, and downloading where that comes first. All shuffle exactly, but the rows with a
star. The network has 20 ms to the first byte, 90 MB/s a connection and 125 MB/s in all; ours may
call the function next to the data, and its profile was measured once by `hyperslab profile`.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import tempfile
from contextlib import ExitStack
from pathlib import Path

from ..cloud.contenders import SECRET
from ..harness import OUT, Report, Settings
from ..process import (
    BUCKET,
    Simulator,
    build_python,
    measure_profile,
    ours,
    peer,
)
from ..training import goals, workloads
from ..training.runs import Runs
from ..training.systems import SYSTEMS
from ..training.workloads import Workload

PRESET = "bench"
WORKERS = [0, 1, 2]
PYTHON = ".venv-torch/bin/python"
PACKAGES = ("torch", "numpy", "h5py", "obstore", "s3fs", "tensorstore", "zarr")


class Bench:
    """The simulated cloud and the runs on it."""

    def __init__(self, stack: ExitStack, settings: Settings, report: Report):
        self.settings, self.report = settings, report
        self.folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(dir=OUT, prefix="torch-"))
        )
        self.sim = stack.enter_context(
            Simulator(PRESET, prices="aws", place="same-region", function_secret=SECRET)
        )
        profile = self.folder / "profile.toml"
        report.say("torch: measuring the profile")
        measure_profile(self.sim, SECRET, profile, 10 if settings.quick else 40)
        report.details["profile"] = profile.read_text()
        report.details["network"] = self.sim.network
        options = {
            "profile": str(profile),
            "prices": "aws",
            "place": "same-region",
            "function": self.sim.function,
        }
        quick = settings.quick
        self.runs = Runs(self.sim, report, self.folder, options, settings.seed, quick)

    def store(self, workload: Workload) -> Path:
        """Writes the array as Zarr and as HDF5, at full speed; returns the table of samples."""
        self.sim.set_network("unshaped")
        cells, table = self.folder / "cells", self.folder / f"{workload.name}.npz"
        workload.write(cells, table, self.settings.seed)
        layout, environment = workload.layout, self.sim.environment
        with ours(environment) as writer:
            writer.ask("create", url=f"s3://{BUCKET}/{workload.name}/zarr", spec=layout.spec())
            writer.ask("load", path=str(cells), data_type=layout.data_type)
            writer.ask("write", shape=list(layout.shape))
        with peer("h5py+s3fs", environment, PYTHON) as writer:
            url = f"s3://{BUCKET}/{workload.name}/file.h5/data"
            writer.ask("ingest", url=url, spec=layout.spec(), path=str(cells))
        cells.unlink()
        self.sim.set_network(PRESET)
        return table

    def workload(self, workload: Workload) -> None:
        """All systems on one workload."""
        wants = [s for s in SYSTEMS if self.settings.wants(f"{workload.name} {s.name}")]
        if not wants:
            return
        self.report.say(f"torch: writing {workload.name}")
        table = self.store(workload)
        self.report.say(f"torch: {workload.name}")
        workers = WORKERS[::2] if self.settings.quick else WORKERS
        scores = self.runs.all(workload, table, workers, wants)
        goals.show(self.report, workload, scores)
        goals.state(self.report, workload, scores)


def run(settings: Settings, report: Report) -> None:
    build_python()
    OUT.mkdir(exist_ok=True)
    for name in PACKAGES:
        report.versions[name] = version(name)
    with ExitStack() as stack:
        bench = Bench(stack, settings, report)
        for workload in workloads.make(settings.quick, settings.seed):
            bench.workload(workload)
    report.note("Samples a second: the median of the runs, each over all its epochs.")
    report.note("Bytes are those of bodies that the simulator sent; requests are those to the store.")
    report.note("* The order of chunks is random, and that of the samples of 16 chunks at a time.")
    report.note(
        "Systems that read whole chunks for every sample run once, and not to the end of 3 epochs: "
        f"they are stopped after {bench.runs.limit:g} s, and count with the samples that they gave."
    )
    report.note("No system caches chunks but those that say so; downloads are kept, too.")
    report.note("The simulator shares the machine's cores with the loader under test.")
    if settings.quick:
        report.note("A quick run has 0 and 2 workers, and 0 for those that are stopped.")


def version(name: str) -> str:
    """Of a package; Debian's PyTorch may have no metadata."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return importlib.import_module(name).__version__
