"""What `hyperslab advise` predicts against what is measured on the simulated S3, for 50 random patterns.

An int32 array of 256 MiB in default chunks, raw or zstd. A pattern has one to four classes of boxes with
sides drawn by their logarithms. `advise` says what a read takes today and would take in the layout that it
proposes; the array is copied there, and boxes of the pattern, anywhere, are read from both, interleaved.
The saving is one less the time after ÷ the time before.
"""

from __future__ import annotations

import json
import math
import os
import random
import statistics
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ..cloud.contenders import SECRET
from ..cloud.layouts import Layout, write_cells
from ..harness import OUT, Report, Settings, Unusable
from ..process import BUCKET, COMMAND_LINE, Simulator, Worker, build, measure_profile, ours

SHAPE = (256, 512, 512)
CHUNK = (64, 64, 64)
QUERIES, ROUNDS = 24, 3
CORRELATION, ERROR = 0.9, 0.2


def draw_pattern(rng: random.Random) -> list[tuple[tuple[int, ...], int]]:
    """Classes of boxes, none larger than a quarter of the array."""
    classes = []
    for _ in range(rng.randint(1, 4)):
        while True:
            extent = tuple(round(side ** rng.random()) for side in SHAPE)
            if math.prod(extent) * 4 <= 16 << 20:
                break
        classes.append((extent, rng.randint(1, 5)))
    return classes


def draw_boxes(classes: list[tuple[tuple[int, ...], int]], rng: random.Random) -> list[Any]:
    """Boxes of the classes in proportion to how often they are read: a small sample would not be."""
    total = sum(often for _, often in classes)
    boxes = []
    for extent, often in classes:
        for _ in range(max(1, round(QUERIES * often / total))):
            starts = [rng.randrange(side - e + 1) for side, e in zip(SHAPE, extent)]
            boxes.append([[start, start + e] for start, e in zip(starts, extent)])
    rng.shuffle(boxes)
    return boxes


def ranks(values: list[float]) -> list[float]:
    order = sorted(range(len(values)), key=values.__getitem__)
    result = [0.0] * len(values)
    for rank, place in enumerate(order):
        result[place] = float(rank)
    return result


class Bench:
    """The simulated cloud, and the arrays on it."""

    def __init__(self, stack: ExitStack, settings: Settings, report: Report):
        self.settings, self.report = settings, report
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=OUT, prefix="advice-")))
        self.sim = stack.enter_context(
            Simulator("bench", prices="aws", place="same-region", function_secret=SECRET)
        )
        self.profile = self.folder / "profile.toml"
        report.say("advice: measuring the profile")
        measure_profile(self.sim, SECRET, self.profile, 10 if settings.quick else 30)
        self.cells = self.folder / "cells"
        write_cells(self.cells, SHAPE, "int32", settings.seed, 1 << 20)
        self.sim.set_network("unshaped")
        for packing in ("raw", "zstd"):
            self.write(self.url(packing), Layout(SHAPE, CHUNK, zstd=packing == "zstd").spec())

    def url(self, name: str) -> str:
        return f"s3://{BUCKET}/advice/{name}.zarr"

    def write(self, url: str, spec: dict[str, Any]) -> None:
        with ours(self.sim.environment) as writer:
            writer.ask("create", url=url, spec=spec)
            writer.ask("load", path=str(self.cells), data_type="int32")
            writer.ask("write", shape=list(SHAPE))

    def command(self, *words: str) -> dict[str, Any]:
        command = [str(COMMAND_LINE), *words, "--json", "--profile", str(self.profile), "--prices", "aws"]
        command += ["--place", "same-region"]
        done = subprocess.run(
            command, env=os.environ | self.sim.environment, capture_output=True, text=True
        )
        if done.returncode != 0:
            raise Unusable(f"`hyperslab {words[0]}` failed: {' '.join(done.stderr.split())}")
        return json.loads(done.stdout)

    def pattern(self, number: int) -> dict[str, Any] | None:
        """Predicts, stores and measures one pattern; None where nothing is proposed."""
        rng = random.Random(f"{self.settings.seed}/{number}")
        packing = ("raw", "zstd")[number % 2]
        classes = draw_pattern(rng)
        boxes = [f"--box={','.join(map(str, extent))}:{often}" for extent, often in classes]
        self.sim.set_network("bench")
        advice = self.command("advise", self.url(packing), *boxes, "--max-chunk", "16MiB")
        layout = advice["proposed"]["layouts"][0]
        if layout == advice["today"]["layouts"][0]:
            return None
        chunk, order = layout["chunks"], layout["order"]
        spec = Layout(SHAPE, tuple(chunk), zstd=packing == "zstd").spec()
        if order != sorted(order):
            spec["codecs"].insert(0, {"name": "transpose", "configuration": {"order": order}})
        self.sim.set_network("unshaped")
        proposed = self.url("proposed")
        self.write(proposed, spec)
        self.sim.set_network("bench")
        with ours(self.sim.environment) as reader:
            settings = {"profile": str(self.profile), "prices": "aws", "place": "same-region"}
            reader.ask("configure", settings=settings)
            reader.ask("open_all", urls=[self.url(packing), proposed])
            times = [self.measure(reader, classes, rng) for _ in range(ROUNDS)]
            reader.ask("remove", url=proposed)
        before, after = (statistics.median(t[which] for t in times) for which in (0, 1))
        expected = [advice[which]["expected"]["seconds"] for which in ("today", "proposed")]
        return {
            "packing": packing,
            "classes": classes,
            "chunk": chunk,
            "order": order,
            "predicted_before": expected[0],
            "predicted_after": expected[1],
            "measured_before": before,
            "measured_after": after,
            "predicted": 1 - expected[1] / expected[0],
            "measured": 1 - after / before,
        }

    def measure(self, reader: Worker, classes: Any, rng: random.Random) -> tuple[float, float]:
        boxes = draw_boxes(classes, rng)
        means = []
        for array in (0, 1):
            answer = reader.ask("queries", queries=[{"array": array, "box": box} for box in boxes])
            reader.ask("check_queries", files=[str(self.cells)] * 2)
            means.append(statistics.fmean(answer["seconds"]))
        return means[0], means[1]


def run(settings: Settings, report: Report) -> None:
    build()
    OUT.mkdir(exist_ok=True)
    count = 6 if settings.quick else 50
    rows: list[dict[str, Any]] = []
    with ExitStack() as stack:
        bench = Bench(stack, settings, report)
        number = 0
        while len(rows) < count:
            row = bench.pattern(number)
            number += 1
            if row is not None:
                rows.append(row)
                report.say(
                    f"advice: {len(rows)} of {count}: {row['packing']} {row['classes']} to {row['chunk']}: "
                    f"saves {row['predicted']:.2f}, measured {row['measured']:.2f}"
                )
    report.rows = rows
    predicted, measured = [r["predicted"] for r in rows], [r["measured"] for r in rows]
    correlation = statistics.correlation(ranks(predicted), ranks(measured))
    errors = [abs(p - m) / abs(m) for p, m in zip(predicted, measured)]
    times = [
        abs(r[f"predicted_{which}"] / r[f"measured_{which}"] - 1)
        for r in rows
        for which in ("before", "after")
    ]
    report.table(
        ["patterns", "without a proposal", "rank correlation", "median error of the saving", "of times"],
        [[count, number - count, correlation, statistics.median(errors), statistics.median(times)]],
    )
    report.show("rank correlation of savings", round(correlation, 3), f"at least {CORRELATION}", correlation >= CORRELATION)
    error = statistics.median(errors)
    report.show("median error of the predicted saving", round(error, 3), f"at most {ERROR}", error <= ERROR)
    report.show("patterns compared", count, "at least 50", count >= 50 or settings.quick)
    report.note("The error of a saving is its distance from the measured one ÷ the measured one.")
