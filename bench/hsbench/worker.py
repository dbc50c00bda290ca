"""A peer's process: the same requests as our driver, answered by one peer.

A time in an answer covers the peer's call alone.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from . import cells
from .cells import numpy_dtype
from .peers import MODULES, Peer


class Server:
    """What one request leaves for the next."""

    def __init__(self, peer: Peer):
        self.peer = peer
        self.array: Any = None
        self.data_type: Any = None
        self.source: np.ndarray | None = None
        self.result: Any = None
        self.arrays: list[Any] = []
        self.asked: list[tuple[int, tuple[slice, ...]]] = []
        self.answers: list[Any] = []

    def versions(self) -> dict[str, str]:
        return self.peer.versions()

    def open(self, url: str, data_type: Any) -> dict[str, Any]:
        self.array, self.data_type = self.peer.open(url, data_type), data_type
        return {}

    def create(self, url: str, spec: dict[str, Any]) -> dict[str, Any]:
        self.array, self.data_type = self.peer.create(url, spec), spec["data_type"]
        return {}

    def create_v2(self, url: str, spec: dict[str, Any]) -> dict[str, Any]:
        self.array, self.data_type = self.peer.create_v2(url, spec), spec["data_type"]
        return {}

    def load(self, path: str, data_type: Any, shape: list[int]) -> dict[str, Any]:
        self.source = None
        self.source = cells.load(path, data_type, shape)
        return {}

    def write(self, shape: list[int]) -> dict[str, Any]:
        assert self.source is not None, "no cells are loaded"
        where = tuple(slice(0, side) for side in shape)
        start, cpu = time.perf_counter(), time.process_time()
        self.peer.write(self.array, where, self.source)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        return {"seconds": seconds, "cpu_seconds": cpu}

    def read(self) -> dict[str, Any]:
        self.result = None
        start, cpu = time.perf_counter(), time.process_time()
        self.result = self.peer.read(self.array)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        return {"seconds": seconds, "cpu_seconds": cpu}

    def ingest(self, url: str, spec: dict[str, Any], path: str) -> dict[str, Any]:
        source = np.memmap(path, numpy_dtype(spec["data_type"]), "r", shape=tuple(spec["shape"]))
        start = time.perf_counter()
        self.peer.ingest(url, spec, source)
        return {"seconds": time.perf_counter() - start}

    def open_all(self, urls: list[str], data_type: Any) -> dict[str, Any]:
        self.arrays = [self.peer.open(url, data_type) for url in urls]
        return {}

    def queries(self, queries: list[dict[str, Any]]) -> dict[str, Any]:
        self.answers.clear()
        self.asked = [
            (query.get("array", 0), tuple(slice(*side) for side in query["box"]))
            for query in queries
        ]
        seconds = []
        cpu = time.process_time()
        for array, where in self.asked:
            start = time.perf_counter()
            self.answers.append(self.peer.query(self.arrays[array], where))
            seconds.append(time.perf_counter() - start)
        return {"seconds": seconds, "cpu_seconds": time.process_time() - cpu}

    def check_queries(
        self, files: list[str], shapes: list[list[int]], data_type: Any
    ) -> dict[str, Any]:
        dtype = numpy_dtype(data_type)
        truth = [
            np.memmap(path, dtype, "r", shape=tuple(shape)) for path, shape in zip(files, shapes)
        ]
        wrong = sum(
            not np.array_equal(np.asarray(answer), truth[array][where])
            for (array, where), answer in zip(self.asked, self.answers, strict=True)
        )
        checked = len(self.answers)
        self.answers.clear()
        return {"checked": checked, "wrong": wrong}

    def open_file(self, url: str) -> dict[str, Any]:
        start = time.perf_counter()
        self.peer.file(url)
        return {"seconds": time.perf_counter() - start}

    def walk(self, url: str) -> dict[str, Any]:
        start = time.perf_counter()
        count = self.peer.walk(url)
        return {"seconds": time.perf_counter() - start, "datasets": count}

    def query_names(
        self, url: str, queries: list[dict[str, Any]], together: bool, path: str
    ) -> dict[str, Any]:
        """Boxes of datasets of one file, opened by name; the answers go to a file."""
        answers, seconds = [], []
        for query in queries:
            where = tuple(slice(*side) for side in query["box"])
            start = time.perf_counter()
            array = self.peer.open(f"{url}/{query['dataset']}", None)
            answers.append(self.peer.query(array, where))
            seconds.append(time.perf_counter() - start)
        Path(path).write_bytes(b"".join(np.ascontiguousarray(one).tobytes() for one in answers))
        return {"seconds": sum(seconds)}

    def dump(self, path: str) -> dict[str, Any]:
        result = self.peer.result(self.result, self.data_type)
        Path(path).write_bytes(cells.to_bytes(result, self.data_type))
        return {}

    def verify(self, path: str) -> dict[str, Any]:
        result = self.peer.result(self.result, self.data_type)
        difference = cells.first_difference(result, path, self.data_type)
        return {"equal": difference is None, "first_difference": difference}

    def release(self) -> dict[str, Any]:
        self.result = None
        return {}


def sentence(reason: Exception) -> str:
    """An error on one line of bearable length."""
    return f"{type(reason).__name__}: {' '.join(str(reason).split())}"[:400]


def main() -> None:
    warnings.simplefilter("ignore")
    # Answers have the real output to themselves; what libraries print goes to the error stream.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    peer = importlib.import_module(MODULES[sys.argv[1]]).make(sys.argv[1])
    server = Server(peer)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"ok": getattr(server, request.pop("op"))(**request)}
        except Exception as reason:  # whatever a peer raises is its answer
            answer = {"error": sentence(reason)}
        out.write(json.dumps(answer) + "\n")
        out.flush()
    peer.close()


if __name__ == "__main__":
    main()
