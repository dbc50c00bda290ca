"""HDF5 files of 1 GiB on local disk, read whole and by small boxes, beside the libraries for them.

The page cache is warm. Whole reads land in a buffer that each system allocates itself, and so does the
floor, a plain read of the file in parts with one thread per core; contiguous cells are also read into a
buffer that is there, by us and plainly. tensorstore has no driver for HDF5: it reads the same
cells from a Zarr array with the same chunks and compression, which is more than it could do with the
file. Boxes are read one after another from one open dataset.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin
import numpy as np

from ..harness import OURS, OUT, Report, Settings, Unusable, interleave
from ..machine import little_free_memory, plain_read, warm_memory
from ..process import Worker, able, build, ours, peer
from .dense import make_cells

PEERS = ("h5py", "netCDF4", "PyTables", "tensorstore")
MIB = 1 << 20


@dataclass(frozen=True)
class Kind:
    """A file: its chunks and filters, the same for Zarr, and what is asked of it."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)
    codecs: tuple[dict[str, Any], ...] | None = None
    goal: str = ""

    @property
    def chunked(self) -> bool:
        return self.name != "contiguous"


BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
KINDS = (
    Kind(
        "deflate+shuffle",
        dict(compression="gzip", compression_opts=4, shuffle=True),
        goal="at most 0.588 of h5py",
    ),
    Kind(
        "zstd",
        dict(hdf5plugin.Zstd(clevel=3)),
        (BYTES, {"name": "zstd", "configuration": {"level": 3, "checksum": False}}),
        goal="at most 1.05 of the best",
    ),
    Kind(
        "blosc",
        dict(hdf5plugin.Blosc(cname="lz4", shuffle=hdf5plugin.Blosc.SHUFFLE)),
        (
            BYTES,
            {
                "name": "blosc",
                "configuration": {
                    "cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0,
                },
            },
        ),
        goal="at most 1.05 of the best",
    ),
    Kind("contiguous", goal="at least 0.9 of a plain read"),
)


class Bench:
    """Workers and files."""

    def __init__(self, stack: ExitStack, settings: Settings, report: Report):
        self.report = report
        self.side = 4096 if settings.quick else 16384
        self.runs = 3 if settings.quick else 5
        self.rng = np.random.default_rng(settings.seed)
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=OUT, prefix="h5-")))
        self.cells = self.folder / "cells"
        make_cells(self.side, settings.seed, self.cells)
        self.workers: dict[str, Worker] = {OURS: stack.enter_context(ours())}
        for name in PEERS:
            self.workers[name] = stack.enter_context(peer(name))
        for worker in self.workers.values():
            report.versions |= worker.ask("versions")

    @property
    def bytes(self) -> int:
        return 4 * self.side * self.side

    def write(self, kind: Kind, chunk: int) -> Path:
        # A name that no file had before: peers keep files open by name, and would go on reading one
        # that was removed, with its chunks.
        folder = self.folder / f"{kind.name}-{chunk}"
        folder.mkdir()
        cells = np.memmap(self.cells, "<f4", "r", shape=(self.side, self.side))
        with h5py.File(folder / "file.h5", "w") as file:
            chunks = (chunk, chunk) if kind.chunked else None
            data = file.create_dataset("cells", cells.shape, "<f4", chunks=chunks, **kind.options)
            for row in range(0, self.side, chunk):
                data[row : row + chunk] = cells[row : row + chunk]
        if kind.codecs:
            worker = self.workers["tensorstore"]
            spec = {
                "shape": [self.side, self.side],
                "chunk_shape": [chunk, chunk],
                "data_type": "float32",
                "fill_value": 0.0,
                "codecs": list(kind.codecs),
            }
            worker.ask("load", path=str(self.cells), data_type="float32", shape=spec["shape"])
            worker.ask("create", url=str(self.folder / "cells.zarr"), spec=spec)
            worker.ask("write", shape=spec["shape"])
        return folder

    def url(self, system: str, folder: Path) -> str:
        if system == "tensorstore":
            return str(self.folder / "cells.zarr")
        return str(folder / "file.h5" / "cells")

    def whole(self, kind: Kind) -> None:
        folder = self.write(kind, 512 if self.side > 4096 else 256)
        what = f"read {kind.name}"
        self.report.say(f"h5local: {what}")

        def one(system: str) -> float:
            worker = self.workers[system]
            worker.ask("open", url=self.url(system, folder), data_type="float32")
            warm_memory(2 * self.bytes + (256 << 20))
            seconds = worker.ask("read")["seconds"]
            answer = worker.ask("verify", path=str(self.cells))
            worker.ask("release")
            if not answer["equal"]:
                raise Unusable(f"{system} read other cells than were written ({kind.name}).")
            return seconds

        systems = {
            system: able(self.report, system, what, lambda s=system: one(s))
            for system in self.workers
            if system != "tensorstore" or kind.codecs
        }

        def floor() -> float:
            warm_memory(2 * self.bytes + (256 << 20))
            return plain_read(folder / "file.h5")

        systems["plain"] = floor
        with little_free_memory(4 << 30):
            runs = interleave(systems, self.runs)
        times = {name: spread.median for name, spread in runs.items()}
        self.row(what, times)
        mine = times[OURS]
        others = {name: time for name, time in times.items() if name not in (OURS, "plain")}
        match kind.name:
            case "deflate+shuffle":
                gain = times["h5py"] / mine
                self.report.show(f"{what}: h5py ÷ ours", round(gain, 2), "at least 1.7", gain >= 1.7)
            case "contiguous":
                self.share(what, times)
                self.into_place(folder)
            case _:
                ratio = mine / min(others.values())
                goal = "at most 1.05"
                self.report.show(f"{what}: ours ÷ best", round(ratio, 2), goal, ratio <= 1.05)
        shutil.rmtree(folder)
        shutil.rmtree(self.folder / "cells.zarr", ignore_errors=True)

    def into_place(self, folder: Path) -> None:
        """Cells that land in a buffer which is there."""
        what = "read contiguous in place"
        self.report.say(f"h5local: {what}")
        mine = self.workers[OURS]
        mine.ask("open", url=self.url(OURS, folder), data_type="float32")
        mine.ask("read")
        buffer = np.ones(self.bytes + MIB, dtype=np.uint8)
        systems = {
            OURS: lambda: mine.ask("read_again")["seconds"],
            "plain": lambda: plain_read(folder / "file.h5", buffer),
        }
        times = {name: spread.median for name, spread in interleave(systems, self.runs).items()}
        if not mine.ask("verify", path=str(self.cells))["equal"]:
            raise Unusable("hyperslab read other cells than were written (in place).")
        mine.ask("release")
        self.row(what, times)
        self.share(what, times)

    def share(self, what: str, times: dict[str, float]) -> None:
        share = times["plain"] / times[OURS]
        self.report.show(f"{what}: plain read ÷ ours", round(share, 2), "at least 0.9", share >= 0.9)

    def boxes(self, kind: Kind, count: int) -> None:
        folder = self.write(kind, 128)
        what = f"{count} boxes of {kind.name}"
        self.report.say(f"h5local: {what}")
        starts = self.rng.integers(0, self.side - 16, (count, 2))
        queries = [{"array": 0, "box": [[int(a), int(a) + 16] for a in start]} for start in starts]
        shape = [self.side, self.side]

        def one(system: str) -> float:
            worker = self.workers[system]
            worker.ask("open_all", urls=[self.url(system, folder)], data_type="float32")
            seconds = sum(worker.ask("queries", queries=queries)["seconds"])
            checked = worker.ask(
                "check_queries", files=[str(self.cells)], shapes=[shape], data_type="float32"
            )
            if checked["wrong"]:
                raise Unusable(f"{system} read {checked['wrong']} wrong boxes ({kind.name}).")
            return seconds

        systems = {
            system: able(self.report, system, what, lambda s=system: one(s))
            for system in self.workers
            if system != "tensorstore" or kind.codecs
        }
        times = {name: spread.median for name, spread in interleave(systems, 3).items()}
        self.row(what, times)
        gain = times["h5py"] / times[OURS]
        self.report.show(f"{what}: h5py ÷ ours", round(gain, 2), "at least 1.5", gain >= 1.5)
        shutil.rmtree(folder)
        shutil.rmtree(self.folder / "cells.zarr", ignore_errors=True)

    def row(self, what: str, times: dict[str, float]) -> None:
        self.report.rows.append({"row": what, "seconds": times})
        self.lines.append([what, *(times.get(name) for name in (OURS, *PEERS, "plain"))])

    lines: list[list[Any]] = []


def run(settings: Settings, report: Report) -> None:
    build()
    OUT.mkdir(exist_ok=True)
    with ExitStack() as stack:
        bench = Bench(stack, settings, report)
        for kind in KINDS:
            if settings.wants(f"read {kind.name}"):
                bench.whole(kind)
        for kind in KINDS:
            if kind.name in ("deflate+shuffle", "contiguous") and settings.wants(f"boxes {kind.name}"):
                bench.boxes(kind, 1000 if settings.quick else 10_000)
    report.table(["row", OURS, *PEERS, "plain"], bench.lines)
    report.note("Seconds, medians. Whole reads check every cell; boxes have 16 × 16 cells.")
