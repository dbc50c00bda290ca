"""The process of one run: it is told of a task, then asked for epochs, and checks what it got.

Batches of an epoch are held until they are checked, outside the timed region.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import sys
import time
import warnings
from typing import Any

import numpy as np

from . import systems
from .task import Task
from .workloads import digest


class Server:
    """What one request leaves for the next."""

    def __init__(self) -> None:
        self.make: Any = None
        self.loader: Any = None
        self.task: Any = None
        self.batches: list[Any] = []
        self.complete = False
        self.orders: set[bytes] = set()

    def begin(self, task: dict[str, Any]) -> dict[str, Any]:
        """Imports and looks at the table."""
        self.task = Task.parse(task)
        assert len(self.task.boxes) == len(self.task.starts)
        self.make = systems.prepare(self.task)
        return {}

    def epoch(self, limit: float) -> dict[str, Any]:
        """Loads an epoch, or as much of it as there is time for; the first one opens, too."""
        start, cpu = time.perf_counter(), cpu_seconds()
        first = None
        if self.loader is None:
            self.loader = self.make()
        self.complete = True
        for batch in self.loader:
            now = time.perf_counter() - start
            first = first or now
            self.batches.append(batch)
            if now > limit:
                self.complete = False
                break
        return {
            "seconds": time.perf_counter() - start,
            "cpu_seconds": cpu_seconds() - cpu,
            "first_batch": first,
            "samples": sum(map(len, self.batches)),
            "complete": self.complete,
        }

    def check(self) -> dict[str, Any]:
        """How many samples are wrong, came twice or are missing, and whether the order is new."""
        got = np.array([digest(s.numpy()) for batch in self.batches for s in batch], np.int64)
        self.batches = []
        wanted, due = np.unique(self.task.sampled["digests"], return_counts=True)
        found, came = np.unique(got, return_counts=True)
        known = np.isin(found, wanted)
        strange = int(came[~known].sum())
        places = np.searchsorted(wanted, found[known])
        times = np.zeros_like(due)
        times[places] = came[known]
        order = got.tobytes()
        fresh = order not in self.orders
        self.orders.add(order)
        return {
            "wrong": strange,
            "twice": int(np.maximum(times - due, 0).sum()),
            "missing": int(np.maximum(due - times, 0).sum()) if self.complete else 0,
            "new_order": fresh,
        }


def cpu_seconds() -> float:
    """Of this process; workers count when they have ended."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    warnings.simplefilter("ignore")
    # Batches of workers are files until they are checked.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    # Answers have the real output to themselves; what libraries print goes to the error stream.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    server = Server()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"ok": getattr(server, request.pop("op"))(**request)}
        except Exception as reason:  # whatever a library raises is its answer
            answer = {"error": f"{type(reason).__name__}: {' '.join(str(reason).split())}"[:400]}
        out.write(json.dumps(answer) + "\n")
        out.flush()
    # Those that were stopped have workers that read ahead; nobody waits for that.
    for child in multiprocessing.active_children():
        child.terminate()
    os._exit(0)


if __name__ == "__main__":
    main()
