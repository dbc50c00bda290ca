"""`hyperslab cp` of 8 GiB to other chunks under --memory 256MiB: peak memory below 512 MiB."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

from ..harness import OUT, Report, Settings, Unusable
from ..process import COMMAND_LINE, build, ours, run_measured

MIB = 1 << 20
LIMIT = 512 * MIB
FROM, TO = (64, 128, 128), (32, 256, 256)


def run(settings: Settings, report: Report) -> None:
    shape = (128, 1024, 1024) if settings.quick else (2048, 1024, 1024)
    total = 4 * shape[0] * shape[1] * shape[2]
    OUT.mkdir(exist_ok=True)
    need = 2 * total + total // 8
    free = shutil.disk_usage(OUT).free
    if free < need:
        raise Unusable(
            f"the copy needs {need // MIB} MiB of disk below bench/out, and {free // MIB} are free."
        )
    build()
    with tempfile.TemporaryDirectory(dir=OUT, prefix="copy-") as folder, ours() as driver:
        report.versions |= driver.ask("versions")
        source, target = str(Path(folder) / "from.zarr"), str(Path(folder) / "to.zarr")
        spec = {
            "shape": shape,
            "chunk_shape": FROM,
            "data_type": "float32",
            "fill_value": 0.0,
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        }
        report.say(f"copy: writing {total // MIB} MiB")
        driver.ask("create", url=source, spec=spec)
        driver.ask("fill")
        os.sync()
        report.say("copy: copying")
        seconds, peak = copy(source, target)
        report.say("copy: checking")
        driver.ask("open", url=target)
        boxes = 0 if settings.quick else 200
        checked = driver.ask("check", boxes=boxes, seed=settings.seed)
        chunk = stored_chunk_shape(target)
        plain = driver.ask("plain_copy", bytes=min(total, 1 << 30))
    rate = total / MIB / seconds
    row = {
        "bytes": total,
        "seconds": seconds,
        "peak_resident_bytes": peak,
        "cells_checked": checked["cells"],
        "cells_different": checked["different"],
        "chunk_shape": chunk,
        "memory_copy_mib_s": plain["bytes"] / MIB / plain["seconds"],
    }
    report.rows.append(row)
    report.table(
        ["MiB", "seconds", "MiB/s", "peak MiB", "cells checked", "different"],
        [[total // MIB, seconds, rate, peak / MIB, checked["cells"], checked["different"]]],
    )
    report.note(f"The physical floor here is a memory copy: {row['memory_copy_mib_s']:.0f} MiB/s.")
    report.show("peak resident memory, MiB", round(peak / MIB, 1), "below 512", peak < LIMIT)
    report.show("cells of the copy that differ", checked["different"], "0", not checked["different"])
    report.show("chunks of the copy", list(chunk), str(list(TO)), tuple(chunk) == TO)


def copy(source: str, target: str) -> tuple[float, int]:
    """Runs the command; returns its seconds and its peak resident bytes."""
    command = [str(COMMAND_LINE), "cp", source, target, "--chunks", ",".join(map(str, TO))]
    command += ["--memory", "256MiB", "--quiet"]
    return run_measured(command)


def stored_chunk_shape(path: str) -> list[int]:
    """The smallest block of the copy, from its metadata."""
    metadata = json.loads((Path(path) / "zarr.json").read_text())
    for codec in metadata["codecs"]:
        if codec["name"] == "sharding_indexed":
            return codec["configuration"]["chunk_shape"]
    return metadata["chunk_grid"]["configuration"]["chunk_shape"]
