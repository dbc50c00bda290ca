"""HDF5 files copied to a Zarr store and back, compared object by object by an independent walk.

Every file of the corpus goes to a store and returns as an HDF5 file. h5py then walks both files: links
with their kinds and targets, types, shapes, limits, chunks, filters, fill values, attributes and every
value have to be the same. Filters that libhdf5 cannot write here become deflate, and are listed. Then a
file of 4 GiB goes there and back under a memory limit of 256 MiB; the peak is that of the process.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin  # noqa: F401  (registers the filters that h5py lacks)
import numpy as np

from ..corpus import cases
from ..harness import OUT, Report, Settings
from ..process import COMMAND_LINE, build

LIMIT = 256 << 20
# Filters that no library here writes: szip, and Blosc2 in ours.
REPLACED = {4, 32026}


def hyperslab(*arguments: str) -> tuple[int, str, int]:
    """Runs a command; returns its code, what it said, and its peak of resident bytes."""
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen([str(COMMAND_LINE), "--quiet", *arguments], stdout=said, stderr=said)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read().decode(errors="replace").strip()
    return child.returncode, text, usage.ru_maxrss * 1024


class Walk:
    """Compares two files; collects sentences."""

    def __init__(self, first: h5py.File, second: h5py.File):
        self.first, self.second = first, second
        self.differences: list[str] = []
        self.seen: set[int] = set()
        self.objects = 0

    def differ(self, path: str, what: str) -> None:
        self.differences.append(f"{path}: {what}")

    def group(self, path: str) -> None:
        one, other = self.first[path], self.second[path]
        if set(one) != set(other):
            self.differ(path, f"members {sorted(one)} became {sorted(other)}")
            return
        if list(one) != list(other):
            self.differ(path, "members have another order")
        self.attributes(path, one, other)
        self.objects += 1
        for name in one:
            below = f"{path.rstrip('/')}/{name}"
            links = [group.get(name, getlink=True) for group in (one, other)]
            if type(links[0]) is not type(links[1]):
                self.differ(below, f"{links[0]} became {links[1]}")
            elif isinstance(links[0], h5py.SoftLink):
                if links[0].path != links[1].path:
                    self.differ(below, "leads somewhere else")
            elif isinstance(links[0], h5py.ExternalLink):
                if (links[0].filename, links[0].path) != (links[1].filename, links[1].path):
                    self.differ(below, "leads somewhere else")
            else:
                self.object(below)

    def object(self, path: str) -> None:
        one, other = self.first[path], self.second[path]
        if type(one) is not type(other):
            self.differ(path, f"{type(one).__name__} became {type(other).__name__}")
            return
        address = h5py.h5o.get_info(one.id).addr
        if address in self.seen:
            return
        self.seen.add(address)
        if isinstance(one, h5py.Group):
            self.group(path)
        elif isinstance(one, h5py.Dataset):
            self.objects += 1
            self.attributes(path, one, other)
            self.dataset(path, one, other)
        else:
            self.objects += 1
            if not one.id.equal(other.id):
                self.differ(path, "is another type")

    def dataset(self, path: str, one: h5py.Dataset, other: h5py.Dataset) -> None:
        if not one.id.get_type().equal(other.id.get_type()):
            self.differ(path, f"type {one.dtype} became {other.dtype}")
        if one.shape != other.shape:
            self.differ(path, f"shape {one.shape} became {other.shape}")
            return
        if one.is_virtual or one.external:
            # Its cells are its own now.
            pass
        else:
            if one.maxshape != other.maxshape:
                self.differ(path, f"limits {one.maxshape} became {other.maxshape}")
            if one.chunks != other.chunks:
                self.differ(path, f"chunks {one.chunks} became {other.chunks}")
            mine, theirs = filters(one), filters(other)
            if mine != theirs and not {number for number, _ in mine} & REPLACED:
                self.differ(path, f"filters {mine} became {theirs}")
        if not same(np.asarray(one.fillvalue), np.asarray(other.fillvalue)):
            self.differ(path, f"fill value {one.fillvalue} became {other.fillvalue}")
        if one.shape is not None and not self.same_values(one[()], other[()]):
            self.differ(path, "values differ")

    def attributes(self, path: str, one: Any, other: Any) -> None:
        if list(one.attrs) != list(other.attrs):
            self.differ(path, f"attributes {list(one.attrs)} became {list(other.attrs)}")
            return
        for name in one.attrs:
            mine, theirs = one.attrs.get_id(name), other.attrs.get_id(name)
            if not mine.get_type().equal(theirs.get_type()):
                self.differ(path, f"the type of the attribute {name!r} is another")
            elif not self.same_values(one.attrs[name], other.attrs[name]):
                self.differ(path, f"the attribute {name!r} differs")

    def same_values(self, mine: Any, theirs: Any) -> bool:
        """References are the same if they lead to the same path."""
        if isinstance(mine, h5py.Empty):
            return isinstance(theirs, h5py.Empty)
        if isinstance(mine, h5py.RegionReference):
            return bool(mine) == bool(theirs) and (not mine or self.first[mine].name == self.second[theirs].name)
        if isinstance(mine, h5py.Reference):
            return bool(mine) == bool(theirs) and (not mine or self.first[mine].name == self.second[theirs].name)
        if isinstance(mine, np.ndarray) and mine.dtype.kind == "O":
            return mine.shape == theirs.shape and all(
                self.same_values(a, b) for a, b in zip(mine.flat, theirs.flat)
            )
        if isinstance(mine, np.ndarray) and mine.dtype.fields:
            return all(self.same_values(mine[name], theirs[name]) for name in mine.dtype.names)
        if isinstance(mine, np.void) and mine.dtype.names:
            return all(self.same_values(mine[name], theirs[name]) for name in mine.dtype.names)
        if isinstance(mine, (str, bytes)):
            return mine == theirs
        return same(np.asarray(mine), np.asarray(theirs))


def same(one: np.ndarray, other: np.ndarray) -> bool:
    return one.shape == other.shape and one.tobytes() == other.tobytes()


def filters(data: h5py.Dataset) -> list[tuple[int, tuple[int, ...]]]:
    plist = data.id.get_create_plist()
    found = [plist.get_filter(i)[::2][:2] for i in range(plist.get_nfilters())]
    # The library itself gives the shuffle its width when a dataset is made.
    return [(number, () if number == 2 else values) for number, values in found]


def there_and_back(folder: Path, path: Path, report: Report, failures: list[str]) -> int:
    """Copies one file, compares; returns how many objects were compared."""
    store, back = folder / "store.zarr", folder / f"back-{path.name}"
    for arguments in (("cp", str(path), str(store)), ("cp", str(store), str(back), "--verify")):
        code, said, _ = hyperslab(*arguments)
        if code != 0:
            failures.append(f"{path.stem}: {said[-300:]}")
            return 0
    with h5py.File(path) as one, h5py.File(back) as other:
        walk = Walk(one, other)
        walk.group("/")
    failures += [f"{path.stem}: {what}" for what in walk.differences]
    return walk.objects


def large(folder: Path, settings: Settings, report: Report) -> None:
    side = 8192 if settings.quick else 32768
    path, store, back = folder / "large.h5", folder / "large.zarr", folder / "again.h5"
    rng = np.random.default_rng(settings.seed)
    with h5py.File(path, "w") as file:
        data = file.create_dataset("cells", (side, side), "<f4", chunks=(512, 512))
        for row in range(0, side, 512):
            data[row : row + 512] = rng.normal(size=(512, side)).astype("<f4")
    peaks = []
    for arguments in (("cp", str(path), str(store)), ("cp", str(store), str(back))):
        code, said, peak = hyperslab(*arguments, "--memory", str(LIMIT))
        if code != 0:
            report.note(f"the large file: {said[-300:]}")
            peak = 1 << 62
        peaks.append(peak)
    with h5py.File(path) as one, h5py.File(back) as other:
        rows = range(0, side, 512)
        equal = all(same(one["cells"][r : r + 512], other["cells"][r : r + 512]) for r in rows)
    report.rows.append({"large": 4 * side * side, "peaks": peaks, "equal": equal})
    size = f"{4 * side * side >> 20} MiB"
    report.show(f"{size} there and back are equal", equal, "True", equal)
    worst = max(peaks)
    goal = f"at most {LIMIT >> 20}"
    report.show("peak resident MiB", worst >> 20, goal, worst <= LIMIT)


def run(settings: Settings, report: Report) -> None:
    build()
    OUT.mkdir(exist_ok=True)
    failures: list[str] = []
    files = objects = 0
    wanted = [case for case in cases() if settings.wants(case.name)]
    if settings.quick:
        wanted = wanted[::8]
    for i, case in enumerate(wanted):
        if i % 50 == 0:
            report.say(f"h5copy: {i} of {len(wanted)} files")
        with tempfile.TemporaryDirectory(dir=OUT) as name:
            folder = Path(name)
            path = folder / f"{case.name}.h5"
            try:
                case.write(path)
            except Exception:  # noqa: BLE001  (what a writer cannot do is not copied)
                continue
            files += 1
            try:
                objects += there_and_back(folder, path, report, failures)
            except Exception as reason:  # noqa: BLE001
                failures.append(f"{case.name}: the walk failed: {reason!r}"[:300])
    report.rows.append({"files": files, "objects": objects, "failures": failures})
    for what in failures[:60]:
        report.note(f"DIFFERS: {what}")
    report.show("files that went there and back", files, "several hundred", files >= 300)
    report.show("objects that differ", len(failures), "0", not failures)
    if settings.only is None:
        with tempfile.TemporaryDirectory(dir=OUT) as name:
            large(Path(name), settings, report)
            shutil.rmtree(name, ignore_errors=True)
