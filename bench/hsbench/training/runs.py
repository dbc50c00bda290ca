"""Runs of systems: each in a process of its own, metered epoch by epoch, interleaved."""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..cloud.contenders import SECRET
from ..harness import Report, Unusable
from ..process import BUCKET, Failed, Simulator, Worker
from .systems import System
from .workloads import Workload

EPOCHS = 3


@dataclass
class Score:
    """All runs of a system with so many workers; a run is a list of epochs."""

    system: System
    workers: int
    runs: list[list[dict[str, Any]]] = field(default_factory=list)

    def rates(self) -> list[float]:
        """Samples a second of each run, over all its epochs."""
        return [total(run, "samples") / total(run, "seconds") for run in self.runs]

    @property
    def rate(self) -> float:
        return statistics.median(self.rates())

    @property
    def first_batch(self) -> float:
        return statistics.median(run[0]["first_batch"] for run in self.runs)

    @property
    def complete(self) -> bool:
        return all(epoch["complete"] for run in self.runs for epoch in run)

    def bytes(self, epoch: int) -> float | None:
        """Fetched in an epoch; of one that was not loaded to its end nothing is told."""
        known = [run[epoch] for run in self.runs if len(run) > epoch and run[epoch]["complete"]]
        return statistics.median(e["bytes"] for e in known) if known else None

    def requests(self, epoch: int) -> float | None:
        known = [run[epoch] for run in self.runs if len(run) > epoch and run[epoch]["complete"]]
        return statistics.median(e["requests"] for e in known) if known else None


def total(run: list[dict[str, Any]], what: str) -> float:
    return sum(epoch[what] for epoch in run)


@dataclass
class Runs:
    """Against one simulated cloud, with the settings of ours."""

    sim: Simulator
    report: Report
    folder: Path
    options: dict[str, Any]
    seed: int
    quick: bool

    @property
    def rounds(self) -> int:
        return 1 if self.quick else 2

    @property
    def limit(self) -> float:
        """Seconds after which a slow system is stopped."""
        return 2.0 if self.quick else 12.0

    def task(self, workload: Workload, table: Path, system: System, workers: int) -> dict[str, Any]:
        layout = workload.layout
        return {
            "system": system.name,
            "zarr": f"s3://{BUCKET}/{workload.name}/zarr",
            "hdf5": f"s3://{BUCKET}/{workload.name}/file.h5/data",
            "table": str(table),
            "shape": layout.shape,
            "chunk": layout.chunk,
            "data_type": layout.data_type,
            "batch": workload.batch,
            "workers": workers,
            "seed": self.seed,
            "options": self.options,
        }

    def all(
        self, workload: Workload, table: Path, workers: list[int], wants: list[System]
    ) -> list[Score]:
        """Every system with every number of workers; in each round in an order of its own."""
        scores = [Score(system, n) for n in workers for system in wants]
        draw = random.Random(workload.name)
        gone: list[Score] = []
        if self.quick:
            scores = [s for s in scores if s.workers == 0 or not s.system.slow]
        for turn in range(self.rounds):
            order = [s for s in scores if s not in gone and (turn == 0 or not s.system.slow)]
            draw.shuffle(order)
            for score in order:
                try:
                    score.runs.append(self.one(workload, table, score.system, score.workers))
                except Failed as reason:
                    what = f"{workload.name} with {score.workers} workers"
                    if score.system.ours:
                        raise Unusable(f"{score.system.name} fails at {what}: {reason}") from reason
                    self.report.note(f"{score.system.name} cannot do {what}: {reason}")
                    gone.append(score)
        return [score for score in scores if score.runs and score not in gone]

    def one(
        self, workload: Workload, table: Path, system: System, workers: int
    ) -> list[dict[str, Any]]:
        """One run in a process of its own: its epochs, timed there and metered here."""
        environment = self.sim.environment | {
            "HYPERSLAB_FUNCTION_SECRET": SECRET,
            "HSBENCH_BLOCK": str(workload.block),
        }
        command = [sys.executable, "-m", "hsbench.training.epochs"]
        what = f"{workload.name}, {system.name}, {workers} workers"
        epochs: list[dict[str, Any]] = []
        left = self.limit if system.slow else float("inf")
        with (
            tempfile.TemporaryDirectory(dir=self.folder) as folder,
            Worker(system.name, command, environment) as worker,
        ):
            task = self.task(workload, table, system, workers) | {"folder": folder}
            worker.ask("begin", task=task)
            while len(epochs) < EPOCHS and left > 0:
                self.sim.reset()
                epoch = worker.ask("epoch", limit=min(left, 1e9))
                meter = self.sim.meter()
                epoch["bytes"] = meter["bytes_out"]
                epoch["requests"] = meter["get"] + meter["head"] + meter["list"]
                epoch["calls"] = meter["function"]["calls"]
                checked = worker.ask("check")
                if checked["wrong"] or checked["twice"] or checked["missing"]:
                    raise Unusable(f"{what}: samples are not what they should be: {checked}.")
                if not checked["new_order"]:
                    raise Unusable(f"{what}: two epochs had the same order.")
                epochs.append(epoch)
                left -= epoch["seconds"]
                if not epoch["complete"]:
                    break
        rate = total(epochs, "samples") / total(epochs, "seconds")
        self.report.say(
            f"  {what}: {rate:.1f} samples/s, first batch {epochs[0]['first_batch']:.2f} s, epochs "
            + ", ".join(f"{e['seconds']:.2f} s {e['bytes'] / 1e6:.0f} MB" for e in epochs)
        )
        return epochs
