"""HDF5 files of every kind, read in full and by boxes, bit for bit as h5py reads them.

Several hundred files are written by h5py, netCDF4 and PyTables across versions, layouts, filters and
types. Every dataset is read whole and by random boxes with steps, and compared with what h5py gives;
so are shapes, attributes, and the names of groups and members. A dataset that h5py itself cannot read
is listed and does not count; one that only Hyperslab cannot read counts as a failure.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin  # noqa: F401  (registers the filters that h5py lacks)
import numpy as np

from .. import cells
from ..corpus import Case, cases
from ..harness import OUT, Report, Settings
from ..process import Failed, Worker, build, ours

BOXES = 50


def little(dtype: np.dtype) -> np.dtype:
    """The same type with the least significant byte first, at the same offsets."""
    if dtype.fields:
        names = list(dtype.names)
        return np.dtype(
            {
                "names": names,
                "formats": [little(dtype.fields[name][0]) for name in names],
                "offsets": [dtype.fields[name][1] for name in names],
                "itemsize": dtype.itemsize,
            }
        )
    if dtype.subdtype:
        base, shape = dtype.subdtype
        return np.dtype((little(base), shape))
    return dtype.newbyteorder("<")


def same_cells(mine: np.ndarray, theirs: np.ndarray) -> bool:
    """Bit for bit, without the bytes between the members of a compound."""
    if theirs.dtype.fields:
        return all(same_cells(mine[name], theirs[name]) for name in theirs.dtype.names)
    return np.ascontiguousarray(mine).tobytes() == np.ascontiguousarray(theirs).tobytes()


def reference_bytes(file: h5py.File, value: Any) -> bytes:
    """An object reference as it is stored: the address of the object."""
    if not value:
        return bytes(8)
    return int(h5py.h5o.get_info(file[value].id).addr).to_bytes(8, "little")


def cell_bytes(value: Any) -> bytes:
    """A cell of variable length."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    array = np.asarray(value)
    return array.astype(array.dtype.newbyteorder("<")).tobytes()


class Records(list):
    """Elements of which parts have no fixed length, as JSON says them."""


def is_record(kind: np.dtype) -> bool:
    """Whether parts of an element have no fixed length, but not the element itself alone."""
    if kind.names:
        return any(is_variable(kind[name]) or is_record(kind[name]) for name in kind.names)
    inner = h5py.check_vlen_dtype(kind)
    return isinstance(inner, np.dtype) and (is_variable(inner) or is_record(inner))


def is_variable(kind: np.dtype) -> bool:
    text = h5py.check_string_dtype(kind)
    return h5py.check_vlen_dtype(kind) is not None or (text is not None and text.length is None)


class Corpus:
    """Compares files, and counts."""

    def __init__(self, worker: Worker, folder: Path, report: Report, seed: int):
        self.worker = worker
        self.folder = folder
        self.report = report
        self.rng = np.random.default_rng(seed)
        self.features: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.failures: list[tuple[str, str]] = []
        self.beyond: list[tuple[str, str]] = []

    def run(self, case: Case) -> None:
        path = self.folder / f"{case.name}.h5"
        try:
            case.write(path)
        except Exception as reason:  # noqa: BLE001  (the writer cannot do it)
            self.beyond.append((case.name, f"writer: {first_line(reason)}"))
            return
        self.counts["files"] += 1
        before = len(self.failures)
        try:
            self.compare(case, path)
        except Failed as reason:
            self.failures.append((case.name, str(reason)))
        if len(self.failures) == before:
            self.features.update(case.features)
        for file in self.folder.iterdir():
            file.unlink() if file.is_file() else shutil.rmtree(file)

    def compare(self, case: Case, path: Path) -> None:
        described = self.worker.ask("describe", url=str(path))
        with h5py.File(path) as file:
            expected = walk(file)
            for name in sorted(set(expected) | set(described)):
                where = f"{case.name}: /{name}"
                if name not in described:
                    self.failures.append((where, "is not found"))
                elif name not in expected:
                    self.failures.append((where, "is not there"))
                else:
                    self.node(where, file, path, name, expected[name], described[name])

    def node(self, where: str, file: h5py.File, path: Path, name: str, node: Any, seen: Any) -> None:
        self.counts["objects"] += 1
        self.attributes(where, node, seen["attributes"])
        if isinstance(node, h5py.Group):
            if "shape" in seen:
                self.failures.append((where, "is an array"))
            return
        self.counts["datasets"] += 1
        names = [str(dim[0].name).rsplit("/", 1)[-1] if len(dim) else None for dim in node.dims]
        if any(names) and seen.get("dimension_names") != names:
            got = seen.get("dimension_names")
            self.failures.append((where, f"the dimensions are {names}, but we see {got}"))
        inner = node.dtype.subdtype[1] if node.dtype.subdtype else ()
        if tuple(seen["shape"]) != node.shape + inner:
            self.failures.append((where, f"the shape is {node.shape}, but we see {seen['shape']}"))
            return
        boxes = [[(0, side, 1) for side in node.shape]]
        boxes += [self.box(node.shape) for _ in range(BOXES if node.size else 0)]
        try:
            truth = [self.truth(file, node, box) for box in boxes]
        except (OSError, TypeError, ValueError) as reason:
            self.beyond.append((where, f"h5py: {first_line(reason)}"))
            return
        out = self.folder / "answer"
        whole = [(0, side, 1) for side in inner]
        try:
            self.worker.ask("open", url=f"{path}/{name}")
            asked = [[*box, *whole] for box in boxes]
            self.worker.ask("boxes", boxes=asked, path=str(out))
        except Failed as reason:
            self.failures.append((where, str(reason)))
            return
        self.judge(where, node, out.read_bytes(), truth)

    def judge(self, where: str, node: h5py.Dataset, answer: bytes, truth: list[Any]) -> None:
        at = 0
        for i, expected in enumerate(truth):
            what = "as a whole" if i == 0 else f"box {i}"
            if isinstance(expected, Records):
                mine, length = cells.take_strings(answer[at:], len(expected))
                at += length
                same = all(same_json(one, json.loads(text)) for one, text in zip(expected, mine))
            elif isinstance(expected, list):
                stored = cells.join_strings(expected)
                same = answer[at : at + len(stored)] == stored
                at += len(stored)
            else:
                kind = little(expected.dtype)
                size = expected.size * kind.itemsize
                mine = np.frombuffer(answer[at : at + size], kind)
                at += size
                same = mine.size == expected.size and same_cells(
                    mine.reshape(expected.shape), expected.astype(kind)
                )
            self.counts["selections"] += 1
            if not same:
                self.failures.append((where, f"differs {what}"))
                return
        if at != len(answer):
            self.failures.append((where, f"{len(answer) - at} bytes too many"))

    def box(self, shape: tuple[int, ...]) -> list[tuple[int, int, int]]:
        """A box that is not empty, often with a step."""
        box = []
        for side in shape:
            start, stop = sorted(int(x) for x in self.rng.integers(0, side, 2))
            box.append((start, stop + 1, int(self.rng.choice([1, 1, 2, 3, 7]))))
        return box

    def truth(self, file: h5py.File, node: h5py.Dataset, box: list[tuple[int, int, int]]) -> Any:
        """What h5py reads: an array, or a list of byte strings for cells of variable length."""
        value = node[tuple(slice(*side) for side in box)] if node.shape else node[()]
        kind = node.dtype
        if h5py.check_ref_dtype(kind) is h5py.Reference:
            flat = np.asarray(value, dtype=object).reshape(-1)
            raw = b"".join(reference_bytes(file, one) for one in flat)
            return np.frombuffer(raw, "V8")
        if h5py.check_ref_dtype(kind) is h5py.RegionReference:
            raise TypeError("h5py does not show the bytes of region references")
        if is_record(kind):
            flat = np.asarray(value, dtype=kind).reshape(-1)
            return Records(as_json(one) for one in flat)
        if h5py.check_vlen_dtype(kind) is not None or h5py.check_string_dtype(kind) is not None:
            if kind.kind == "O":
                flat = np.asarray(value, dtype=object).reshape(-1) if node.shape else [value]
                return [cell_bytes(one) for one in flat]
        return np.asarray(value, dtype=None if node.shape else kind)

    def attributes(self, where: str, node: Any, seen: dict[str, Any]) -> None:
        """Names, and values that JSON can say."""
        hidden = {"DIMENSION_LIST", "REFERENCE_LIST"}
        names = set(node.attrs) - hidden
        if set(seen) != names:
            self.failures.append((where, f"the attributes are {sorted(names)}, we see {sorted(seen)}"))
            return
        for name in names:
            try:
                value = node.attrs[name]
            except (OSError, TypeError) as reason:
                self.beyond.append((f"{where} @{name}", f"h5py: {first_line(reason)}"))
                continue
            self.counts["attributes"] += 1
            expected = as_json(value)
            if expected is not NotImplemented and not same_json(expected, seen[name]):
                self.failures.append((f"{where} @{name}", f"is {expected!r}, we see {seen[name]!r}"))


def walk(file: h5py.File) -> dict[str, Any]:
    """Every path of a file, each group once, links followed where they lead somewhere."""
    found: dict[str, Any] = {"": file}
    groups: list[tuple[str, Any]] = [("", file)]
    seen: set[Any] = {address(file)}
    while groups:
        path, group = groups.pop()
        for name in group:
            try:
                node = group[name]
            except (KeyError, OSError, RuntimeError, ValueError):
                continue
            if isinstance(node, h5py.Datatype):
                continue
            below = f"{path}/{name}" if path else name
            found[below] = node
            if isinstance(node, h5py.Group) and address(node) not in seen:
                seen.add(address(node))
                groups.append((below, node))
    return found


def address(node: Any) -> tuple[str, int]:
    return (node.file.filename, h5py.h5o.get_info(node.id).addr)


def as_json(value: Any) -> Any:
    """An attribute as JSON says it."""
    if isinstance(value, h5py.Empty):
        return None
    if isinstance(value, (h5py.Reference, h5py.RegionReference)):
        return NotImplemented
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "O" and value.size and isinstance(value.flat[0], h5py.Reference):
            return NotImplemented
        return [as_json(one) for one in value]
    if isinstance(value, np.void):
        if not value.dtype.names:
            return NotImplemented
        return {name: as_json(value[name]) for name in value.dtype.names}
    if isinstance(value, (complex, np.complexfloating)):
        return NotImplemented
    if isinstance(value, np.generic):
        return as_json(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    return value


def same_json(expected: Any, seen: Any) -> bool:
    if isinstance(expected, list):
        return (
            isinstance(seen, list)
            and len(seen) == len(expected)
            and all(map(same_json, expected, seen))
        )
    if isinstance(expected, dict):
        return isinstance(seen, dict) and all(
            same_json(value, seen.get(name)) for name, value in expected.items()
        )
    return expected is NotImplemented or expected == seen


def first_line(reason: Exception) -> str:
    return (str(reason).strip().splitlines() or [type(reason).__name__])[0][:200]


def run(settings: Settings, report: Report) -> None:
    """Runs all cases; one in eight of them if it is to be quick."""
    build()
    wanted = [case for case in cases() if settings.wants(case.name)]
    if settings.quick:
        wanted = wanted[::8]
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=OUT) as folder, ours() as worker:
        corpus = Corpus(worker, Path(folder), report, settings.seed)
        report.versions |= {
            "h5py": h5py.__version__,
            "libhdf5": h5py.version.hdf5_version,
            **worker.ask("versions"),
        }
        for i, case in enumerate(wanted):
            if i % 50 == 0:
                report.say(f"h5corpus: {i} of {len(wanted)} files")
            corpus.run(case)
    for what, count in corpus.counts.items():
        report.rows.append({"what": what, "count": count})
    report.rows.append({"what": "features", "count": len(corpus.features)})
    report.details["features"] = dict(corpus.features)
    report.details["beyond a peer"] = corpus.beyond
    report.details["failures"] = corpus.failures
    report.note("features: " + ", ".join(sorted(corpus.features)))
    for where, reason in corpus.beyond:
        report.note(f"beyond a peer: {where}: {reason}")
    for where, reason in corpus.failures[:40]:
        report.note(f"FAILS: {where}: {reason}")
    report.show("selections that differ or fail", len(corpus.failures), "0", not corpus.failures)
    report.show("files", corpus.counts["files"], "several hundred", corpus.counts["files"] >= 300)
