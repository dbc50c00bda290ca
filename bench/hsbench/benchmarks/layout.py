"""The four data sets of Sarawagi & Stonebraker (1994): blocks, requests, bytes and time by layout.

Arrays of 4-byte cells, of 182 MB, 324 MB and twice 4.255 GB (table 1 of the paper) and a dozen queries each, of
the kinds it lists (`hsbench/sequoia/setN.txt`, committed before anything was tuned). Layouts: cells in
the given order, default chunks (sides in proportion to the array's), chunks by pattern, the same with
the chunks of a shard in the order of lemma 2, and two copies. Blocks are those of the paper's model
with boxes that start anywhere, 8 KB on sets 1 and 2 and 256 KB on sets 3 and 4. Then the arrays are
stored so, raw, the chunks in shards of 64 MiB, and a stream of queries is read from local disk with a
cold cache and from the simulated S3, one layout at a time.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..cloud.contenders import SECRET
from ..cloud.layouts import write_cells
from ..harness import BENCH, OUT, Report, Settings
from ..process import BUCKET, Simulator, Worker, build, measure_profile, ours, run_example

CELL = 4
SHARD = 64 << 20
DRIVES = 2
SWITCH_SECONDS = 10.0
LINEAR, DEFAULT, PATTERN = "given order", "default chunks", "by pattern"
REORDERED, COPIES = "reordered", "two copies"
FORMS = (LINEAR, DEFAULT, PATTERN, REORDERED, COPIES)
# Queries of a round, and rounds.
QUERIES, ROUNDS = 60, 3


@dataclass(frozen=True)
class DataSet:
    """An array of the paper, with the blocks and the units of media it is stored in."""

    number: int
    shape: tuple[int, ...]
    block: int
    unit: int
    fewer: float | None

    @property
    def queries(self) -> Path:
        return BENCH / "hsbench" / "sequoia" / f"set{self.number}.txt"

    def classes(self) -> list[tuple[tuple[int, ...], int]]:
        lines = [line.split("#")[0].split() for line in self.queries.read_text().splitlines()]
        rows = [[int(word) for word in line] for line in lines if line][1:]
        return [(tuple(row[:-1]), row[-1]) for row in rows]

    def draw(self, count: int, seed: int) -> list[list[list[int]]]:
        """Boxes of the classes, as often as each is read, anywhere in the array."""
        rng = random.Random(f"{self.number}/{seed}")
        extents, often = zip(*self.classes())
        boxes = []
        for extent in rng.choices(extents, often, k=count):
            starts = [rng.randrange(side - e + 1) for side, e in zip(self.shape, extent)]
            boxes.append([[start, start + e] for start, e in zip(starts, extent)])
        return boxes


# Sets 3 and 4 filled two platters of 3.27 GB; units of a twelfth of that tell the layouts apart.
SETS = [
    DataSet(1, (25, 135, 27, 100, 5), 8 << 10, 16 << 20, 4.0),
    DataSet(2, (50, 180, 90, 20, 5), 8 << 10, 32 << 20, 13.0),
    DataSet(3, (72, 90, 38, 144, 30), 256 << 10, 272 << 20, None),
    DataSet(4, (114, 360, 180, 24, 6), 256 << 10, 272 << 20, None),
]


def model(data: DataSet, seed: int) -> dict[str, Any]:
    shape = ",".join(map(str, data.shape))
    words = [str(data.queries), shape, str(CELL), str(data.block), str(data.unit), str(DRIVES), str(seed)]
    return json.loads(run_example("sequoia", *words).stdout)


def shards_of(chunk: list[int], shape: tuple[int, ...]) -> list[int]:
    """Whole rows of chunks, from the last axis on, up to the size of a shard."""
    shard = list(chunk)
    for axis in reversed(range(len(shape))):
        room = SHARD // (CELL * product(shard))
        shard[axis] *= max(1, min(room, -(-shape[axis] // chunk[axis])))
    return shard


def product(numbers: list[int]) -> int:
    result = 1
    for number in numbers:
        result *= number
    return result


def spec(shape: tuple[int, ...], chunk: list[int], order: list[int] | None) -> dict[str, Any]:
    """Raw chunks in shards; the chunks of a shard lie in this order of axes."""
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    shard = shards_of(chunk, shape)
    stored = order or list(range(len(shape)))
    codecs: list[dict[str, Any]] = [little]
    inner = [chunk[axis] for axis in stored]
    if stored != sorted(stored):
        # The cells of a chunk stay as they are.
        back = [stored.index(axis) for axis in range(len(stored))]
        codecs.insert(0, {"name": "transpose", "configuration": {"order": back}})
    sharding = {
        "chunk_shape": inner,
        "codecs": codecs,
        "index_codecs": [little, {"name": "crc32c"}],
        "index_location": "end",
    }
    chain: list[dict[str, Any]] = [{"name": "sharding_indexed", "configuration": sharding}]
    if stored != sorted(stored):
        chain.insert(0, {"name": "transpose", "configuration": {"order": stored}})
    return metadata(shape, shard, chain)


def linear(shape: tuple[int, ...]) -> dict[str, Any]:
    """A chunk for each step of the first axis: one after another they are the array row by row."""
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    return metadata(shape, [1, *shape[1:]], [little])


def metadata(shape: tuple[int, ...], chunk: list[int], codecs: list[Any]) -> dict[str, Any]:
    return {
        "shape": list(shape),
        "chunk_shape": chunk,
        "data_type": "int32",
        "fill_value": 0,
        "codecs": codecs,
    }


def arrays(data: DataSet, found: dict[str, Any], form: str) -> list[tuple[dict[str, Any], list[int]]]:
    """The arrays of a form: how each is stored, and the chunks by which reads choose."""
    shape = data.shape
    if form == LINEAR:
        return [(linear(shape), list(shape))]
    if form == COPIES:
        return [(spec(shape, chunk, None), chunk) for chunk in found["copies"]]
    chunk = found["default_chunk"] if form == DEFAULT else found["chunk"]
    order = found["order"] if form == REORDERED else None
    return [(spec(shape, chunk, order), chunk)]


def touched(box: list[list[int]], chunk: list[int]) -> int:
    return product([(end - 1) // side - start // side + 1 for (start, end), side in zip(box, chunk)])


def cpu_seconds(worker: Worker) -> float:
    """What the process has used of the processors."""
    assert worker.process
    fields = Path(f"/proc/{worker.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def forget_files(folder: Path) -> None:
    """Takes all files below a folder out of the page cache."""
    for file in folder.rglob("*"):
        if file.is_file():
            handle = os.open(file, os.O_RDONLY)
            try:
                os.fsync(handle)
                os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(handle)


class Stored:
    """The layouts of one data set, read from a store one after another."""

    def __init__(self, bench: Bench, data: DataSet, found: dict[str, Any], cells: Path):
        self.bench, self.data, self.found, self.cells = bench, data, found, cells

    def measure(self, place: str, form: str) -> dict[str, float]:
        folder = self.bench.folder / "arrays"
        sim = self.bench.sim
        base = str(folder) if place == "disk" else f"s3://{BUCKET}/layout"
        environment = sim.environment if place == "s3" else {}
        wanted = arrays(self.data, self.found, form)
        urls = [f"{base}/{number}.zarr" for number in range(len(wanted))]
        sim.set_network("unshaped")
        with ours(environment) as writer:
            for url, (described, _) in zip(urls, wanted):
                writer.ask("create", url=url, spec=described)
                writer.ask("load", path=str(self.cells), data_type="int32")
                writer.ask("write", shape=list(self.data.shape))
        sim.set_network("bench")
        rounds = []
        with ours(environment) as reader:
            if place == "s3":
                reader.ask("configure", settings={"profile": str(self.bench.profile), "prices": "aws"})
            reader.ask("open_all", urls=urls)
            for turn in range(ROUNDS):
                boxes = self.data.draw(self.bench.queries, self.bench.settings.seed + turn)
                chunks = [chunk for _, chunk in wanted]
                asked = [
                    {"array": min(range(len(urls)), key=lambda a: touched(box, chunks[a])), "box": box}
                    for box in boxes
                ]
                if place == "disk":
                    forget_files(folder)
                sim.reset()
                before = cpu_seconds(reader)
                answer = reader.ask("queries", queries=asked)
                used = cpu_seconds(reader) - before
                meter = sim.meter()
                reader.ask("check_queries", files=[str(self.cells)] * len(urls))
                rounds.append(
                    {
                        "seconds": sum(answer["seconds"]) / len(boxes),
                        "cpu": used / len(boxes),
                        "requests": (meter["get"] + meter["head"]) / len(boxes),
                        "bytes": meter["bytes_out"] / len(boxes),
                    }
                )
            for url in urls:
                reader.ask("remove", url=url)
        return {key: statistics.median(r[key] for r in rounds) for key in rounds[0]}


class Bench:
    """What all data sets share."""

    def __init__(self, stack: ExitStack, settings: Settings, report: Report):
        self.settings, self.report = settings, report
        self.queries = 12 if settings.quick else QUERIES
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=OUT, prefix="layout-")))
        self.sim = stack.enter_context(
            Simulator("bench", prices="aws", place="same-region", function_secret=SECRET)
        )
        self.profile = self.folder / "profile.toml"
        report.say("layout: measuring the profile")
        measure_profile(self.sim, SECRET, self.profile, 10 if settings.quick else 30)

    def data_set(self, data: DataSet) -> None:
        name = f"set {data.number}"
        found = model(data, self.settings.seed)
        self.blocks(data, found)
        cells = self.folder / "cells"
        self.report.say(f"layout: writing the cells of {name}")
        write_cells(cells, data.shape, "int32", self.settings.seed, 1 << 30)
        stored = Stored(self, data, found, cells)
        rows: list[list[Any]] = []
        times: dict[tuple[str, str], float] = {}
        for place in ("disk", "s3"):
            for form in FORMS:
                if not self.settings.wants(f"{name} {place} {form}"):
                    continue
                self.report.say(f"layout: {name}, {place}, {form}")
                began = time.perf_counter()
                taken = stored.measure(place, form)
                times[place, form] = taken["seconds"]
                far = "" if place == "disk" else f"{taken['requests']:.1f}"
                much = "" if place == "disk" else f"{taken['bytes'] / 1e6:.2f}"
                rows.append([name, place, form, taken["seconds"] * 1e3, taken["cpu"] * 1e3, far, much])
                self.report.rows.append({"set": data.number, "place": place, "form": form, **taken})
                self.report.say(f"  {taken['seconds'] * 1e3:.1f} ms a query, {time.perf_counter() - began:.0f} s in all")
        cells.unlink()
        header = ["data set", "store", "layout", "ms/query", "CPU ms/query", "requests/query", "MB/query"]
        self.report.table(header, rows)
        for place in ("disk", "s3"):
            if (place, PATTERN) in times and (place, DEFAULT) in times:
                ratio = times[place, PATTERN] / times[place, DEFAULT]
                self.report.show(
                    f"{name}, {place}: time by pattern ÷ default chunks",
                    round(ratio, 3),
                    "at most 0.6",
                    ratio <= 0.6,
                )

    def blocks(self, data: DataSet, found: dict[str, Any]) -> None:
        """What the model says."""
        name = f"set {data.number}"
        self.report.details[name] = found
        self.report.table(
            ["data set", "layout", "chunk", "blocks/query", "blocks from first to last"],
            [
                [name, LINEAR, "", found["linear"], ""],
                [name, DEFAULT, found["default_chunk"], found["default"], ""],
                [name, PATTERN, found["chunk"], found["pattern"], found["seek"]],
                [name, REORDERED, f"axes {found['order']}", found["pattern"], found["seek_reordered"]],
                [name, COPIES, found["copies"], found["replicas"], ""],
            ],
        )
        if data.fewer:
            ratio = found["linear"] / found["pattern"]
            self.report.show(
                f"{name}: blocks of linear ÷ by pattern",
                round(ratio, 2),
                f"at least {data.fewer:g}",
                ratio >= data.fewer,
            )
            return
        ratio = found["replicas"] / found["pattern"]
        self.report.show(
            f"{name}: blocks of two copies ÷ the best single one", round(ratio, 3), "at most 0.4", ratio <= 0.4
        )
        self.report.table(
            ["data set", "units of media", "switches", f"seconds of {found['queries']} queries"],
            [
                [name, "filled in the order of chunks", found["switches"], found["switches"] * SWITCH_SECONDS],
                [
                    name,
                    f"parts of {found['unit']}",
                    found["switches_partitioned"],
                    found["switches_partitioned"] * SWITCH_SECONDS,
                ],
            ],
        )
        self.report.show(
            f"{name}: media switches with partition, and without",
            [found["switches_partitioned"], found["switches"]],
            "fewer with",
            found["switches_partitioned"] < found["switches"],
        )


def run(settings: Settings, report: Report) -> None:
    build()
    OUT.mkdir(exist_ok=True)
    with ExitStack() as stack:
        bench = Bench(stack, settings, report)
        for data in SETS[:2] if settings.quick else SETS:
            if settings.wants(f"set {data.number}"):
                bench.data_set(data)
    report.note("A query goes to the copy of which it touches fewer chunks.")
    report.note(f"Media: {DRIVES} drives, {SWITCH_SECONDS:g} s a switch, the unit needed longest ago is replaced.")
    report.note("Blocks: the mean over the queries of a file by how often each is read, boxes anywhere.")
