"""`hyperslab rechunk` of 4 GiB from time-major to space-major chunks within 512 MiB, beside rechunker.

Twice: chunks without compression, of which parts can be read, and chunks compressed with zstd, which
take two passes. All systems are processes of their own; the time of ours is that of the whole process.
"""

from __future__ import annotations

import filecmp
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from ..harness import BENCH, OUT, Report, Settings, Unusable
from ..process import COMMAND_LINE, Worker, build, ours, run_measured

MIB = 1 << 20
LIMIT = 512 * MIB
KILLS = 20
FASTER = 3.0
RAW = [{"name": "bytes", "configuration": {"endian": "little"}}]
ZSTD = [*RAW, {"name": "zstd", "configuration": {"level": 0, "checksum": False}}]
KINDS = {"raw": RAW, "zstd": ZSTD}


def run(settings: Settings, report: Report) -> None:
    quick = settings.quick
    shape = [128, 512, 512] if quick else [1024, 1024, 1024]
    source_chunks, chunks = [1, shape[1], shape[2]], [shape[0], 32, 32]
    total = 4 * shape[0] * shape[1] * shape[2]
    OUT.mkdir(exist_ok=True)
    free = shutil.disk_usage(OUT).free
    if free < 5 * total:
        raise Unusable(
            f"the arrays need {5 * total // MIB} MiB of disk below bench/out, and {free // MIB} are free."
        )
    build()
    for kind, codecs in KINDS.items():
        if not settings.wants(kind):
            continue
        with tempfile.TemporaryDirectory(dir=OUT, prefix="rechunk-") as folder, ours() as driver:
            report.versions |= driver.ask("versions")
            one = Case(Path(folder), kind, codecs, shape, source_chunks, chunks, driver, settings, report)
            one.prepare()
            one.race()
            one.kill()


class Case:
    """One kind of chunks."""

    def __init__(
        self, folder: Path, kind: str, codecs: list, shape: list[int], source_chunks: list[int],
        chunks: list[int], driver: Worker, settings: Settings, report: Report,
    ):  # fmt: skip
        self.folder, self.kind, self.codecs, self.shape = folder, kind, codecs, shape
        self.source_chunks, self.chunks = source_chunks, chunks
        self.driver, self.settings, self.report = driver, settings, report
        self.source, self.target = folder / "from.zarr", folder / "to.zarr"
        self.v2 = folder / "from-v2.zarr"
        self.bytes = 4 * shape[0] * shape[1] * shape[2]

    def prepare(self) -> None:
        """The source, and the same chunks once more under the names of Zarr v2, for rechunker."""
        self.report.say(f"rechunk {self.kind}: writing {self.bytes // MIB} MiB")
        spec = {
            "shape": self.shape,
            "chunk_shape": self.source_chunks,
            "data_type": "float32",
            "fill_value": 0.0,
            "codecs": self.codecs,
        }
        self.driver.ask("create", url=str(self.source), spec=spec)
        self.driver.ask("fill")
        self.v2.mkdir()
        for chunk in (self.source / "c").rglob("*"):
            if chunk.is_file():
                os.link(chunk, self.v2 / ".".join(chunk.relative_to(self.source / "c").parts))
        compressed = len(self.codecs) > 1
        metadata = {
            "zarr_format": 2, "shape": self.shape, "chunks": self.source_chunks, "dtype": "<f4",
            "compressor": {"id": "zstd", "level": 0} if compressed else None,
            "fill_value": 0.0, "order": "C", "filters": None,
        }  # fmt: skip
        (self.v2 / ".zarray").write_text(json.dumps(metadata))

    def race(self) -> None:
        """All systems in turn; the loops once, since they take long and nothing depends on them."""
        systems = ["hyperslab", "rechunker", "tensorstore", "zarr-python"]
        times: dict[str, list[float]] = {name: [] for name in systems}
        peaks: dict[str, int] = dict.fromkeys(systems, 0)
        rounds = 1 if self.settings.quick else 3
        for turn in range(rounds):
            for name in systems[: 4 if turn == 0 else 2]:
                self.report.say(f"rechunk {self.kind}: {name}, round {turn + 1}")
                self.clear()
                os.sync()
                try:
                    seconds, peak = self.ours() if name == "hyperslab" else self.other(name)
                except Unusable as reason:
                    if name in ("hyperslab", "rechunker"):
                        raise
                    self.report.note(f"{name} cannot do {self.kind}: {reason}")
                    continue
                times[name].append(seconds)
                peaks[name] = max(peaks[name], peak)
                if turn == 0:
                    self.check(name)
        lines = []
        for name in systems:
            if times[name]:
                seconds = statistics.median(times[name])
                rate = self.bytes / MIB / seconds
                lines.append([self.kind, name, seconds, rate, peaks[name] / MIB])
                self.report.rows.append(
                    {"kind": self.kind, "system": name, "seconds": times[name], "peak_resident_bytes": peaks[name]}
                )
        self.report.table(["chunks", "system", "seconds", "MiB/s", "peak MiB"], lines)
        faster = statistics.median(times["rechunker"]) / statistics.median(times["hyperslab"])
        self.ours_seconds = statistics.median(times["hyperslab"])
        show = self.report.show
        show(f"{self.kind}: times faster than rechunker", round(faster, 2), f"at least {FASTER:g}", faster >= FASTER)
        peak = peaks["hyperslab"]
        show(f"{self.kind}: peak resident memory, MiB", round(peak / MIB, 1), "at most 512", peak <= LIMIT)

    def clear(self) -> None:
        for name in ("to.zarr", "temp.zarr"):
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def command(self, *more: str, target: Path | None = None) -> list[str]:
        sides = ",".join(map(str, self.chunks))
        command = [str(COMMAND_LINE), "rechunk", str(self.source), str(target or self.target)]
        return [*command, "--chunks", sides, "--memory", "512MiB", "--quiet", *more]

    def ours(self) -> tuple[float, int]:
        return run_measured(self.command())

    def other(self, name: str) -> tuple[float, int]:
        python = BENCH / ".venv-rechunker/bin/python" if name == "rechunker" else sys.executable
        box = [self.chunks[0], 64, self.shape[2]]
        asked: dict[str, Any] = {
            "system": name, "source": str(self.v2 if name == "rechunker" else self.source),
            "target": str(self.target), "chunks": self.chunks, "memory": LIMIT,
            "box": box, "codecs": self.codecs, "temp": str(self.folder / "temp.zarr"),
        }  # fmt: skip
        command = [str(python), "-m", "hsbench.rechunkers", json.dumps(asked)]
        with tempfile.TemporaryFile("w+") as out:
            _, peak = run_measured(command, stdout=out, cwd=BENCH)
            out.seek(0)
            return float(out.read().split()[-1]), peak

    def check(self, name: str) -> None:
        """Compares cells with the pattern that the source was filled with."""
        self.driver.ask("open", url=str(self.target))
        boxes = 0 if self.settings.quick else 100
        found = self.driver.ask("check", boxes=boxes, seed=self.settings.seed)
        if name == "hyperslab":
            self.report.show(f"{self.kind}: cells that differ", found["different"], "0", not found["different"])
        elif found["different"]:
            raise Unusable(f"{name} made {found['different']} wrong cells.")

    def kill(self) -> None:
        """Kills runs at random moments and resumes them, until there were enough; compares the files."""
        self.clear()
        self.ours()
        target = self.folder / "killed.zarr"
        draw = random.Random(self.settings.seed)
        kills, wrong, finished = 0, 0, 0
        # On average a run that ends had a good part of all kills.
        longest = self.ours_seconds * 3 / KILLS if not self.settings.quick else self.ours_seconds
        more: list[str] = []
        while kills < KILLS or finished == 0:
            process = subprocess.Popen(self.command("--resume", *more, target=target))
            try:
                code = process.wait(timeout=draw.uniform(0.02, longest) if kills < KILLS else None)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                kills += 1
                continue
            if code != 0:
                raise Unusable(f"a resumed `hyperslab rechunk` ended with {code}.")
            finished += 1
            wrong += not same_files(self.target, target)
            shutil.rmtree(target)
        name = f"{self.kind}: runs that were killed {kills} times in all, resumed, and differ"
        self.report.show(name, f"{wrong} of {finished}", "0", wrong == 0 and kills >= KILLS)


def same_files(a: Path, b: Path) -> bool:
    """True if two folders hold the same files. Temporary files of writes that were killed do not count."""

    def files(folder: Path) -> set[Path]:
        found = (path for path in folder.rglob("*") if path.is_file())
        return {path.relative_to(folder) for path in found if not path.name.startswith(".hyperslab-tmp-")}

    names = files(a)
    return names == files(b) and all(filecmp.cmp(a / name, b / name, shallow=False) for name in names)
