"""Every data type × codec chain × layout, written by each and read by each other, bit for bit.

Hyperslab, zarr-python and tensorstore write the same arrays, and each reads what the others wrote.
The cells hold extremes, NaNs with payloads, a chunk of nothing but fill values, chunks that are
covered in part, and chunks that nobody wrote. What a peer itself cannot do is listed with its
error and does not count; what Hyperslab cannot do counts as a failure.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections import Counter, defaultdict
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import cells
from ..harness import OURS, OUT, Report, Settings
from ..process import Failed, Worker, build, ours, peer
from . import _v2
from ._chains import SHAPE, WRITTEN, Case, cases
from ._types import TYPES, Type

PEERS = ("zarr-python", "tensorstore")
# A chunk of the grid that holds the fill value only, so that writers leave it out.
EMPTY = (slice(0, 3), slice(4, 8), slice(0, 5))


@dataclass
class Outcome:
    """What became of one (array, writer, reader): equal, different, or an error of one of them."""

    case: str
    writer: str
    reader: str
    state: str
    reason: str = ""

    @property
    def ours(self) -> bool:
        return OURS in (self.writer, self.reader)


class Matrix:
    """Runs cases and judges them."""

    def __init__(self, workers: dict[str, Worker], folder: Path, seed: int):
        self.workers = workers
        self.folder = folder
        self.rng = np.random.default_rng(seed)
        self.outcomes: list[Outcome] = []

    def prepare(self, kind: Type, partly: bool) -> tuple[list[int], Path, Path]:
        """Random cells to write, and what a reader has to see."""
        box = WRITTEN if partly else SHAPE
        written = kind.array(self.rng, box)
        written[EMPTY] = kind.filled(written[EMPTY].shape)
        expected = kind.filled(SHAPE)
        expected[tuple(slice(0, side) for side in box)] = written
        source, wanted = self.folder / "source", self.folder / "wanted"
        source.write_bytes(cells.to_bytes(written, kind.data_type))
        wanted.write_bytes(cells.to_bytes(expected, kind.data_type))
        return list(box), source, wanted

    def write(self, writer: str, op: str, spec: Any, box: list[int], source: Path) -> str | None:
        """Writes one array; returns why it could not."""
        worker, data_type = self.workers[writer], spec["data_type"]
        try:
            worker.ask(op, url=str(self.folder / writer), spec=spec)
            if op == "create" and not self.keeps_endian(writer, spec):
                return "it stores no big-endian cells of this type, whatever the codec asks for"
            worker.ask("load", path=str(source), data_type=data_type, shape=box)
            worker.ask("write", shape=box)
        except Failed as reason:
            return str(reason)
        return None

    def keeps_endian(self, writer: str, spec: Any) -> bool:
        """False if big-endian cells were asked for and the metadata does not say so."""
        big = '"big"'
        stored = (self.folder / writer / "zarr.json").read_text()
        return big in stored or big not in json.dumps(spec["codecs"])

    def read(self, reader: str, writer: str, data_type: Any, wanted: Path) -> tuple[str, str]:
        """Reads one array; returns what became of it, and why."""
        worker = self.workers[reader]
        try:
            worker.ask("open", url=str(self.folder / writer), data_type=data_type)
            worker.ask("read")
            answer = worker.ask("verify", path=str(wanted))
        except Failed as reason:
            return "reader fails", str(reason)
        if answer["equal"]:
            return "equal", ""
        return "different", f"byte {answer['first_difference']} of the cells differs"

    def run(self, case: Case) -> None:
        """Each writes, each reads; then every pair of two systems is judged."""
        box, source, wanted = self.prepare(case.kind, partly=True)
        refused = {
            name: self.write(name, "create", case.spec(), box, source) for name in self.workers
        }
        seen = {
            (writer, reader): self.read(reader, writer, case.kind.data_type, wanted)
            for writer, reason in refused.items()
            if reason is None
            for reader in self.workers
        }
        for writer in self.workers:
            for reader in self.workers:
                if writer != reader:
                    state, why = judge(writer, reader, refused, seen)
                    self.outcomes.append(Outcome(case.name, writer, reader, state, why))
        self.clear()

    def run_v2(self, name: str, kind: Type, spec: Any) -> None:
        """Peers write Zarr v2, Hyperslab reads."""
        box, source, wanted = self.prepare(kind, partly=False)
        for writer in PEERS:
            reason = self.write(writer, "create_v2", spec, box, source)
            if reason is not None:
                outcome = Outcome(f"v2: {name}", writer, OURS, "peer cannot", f"{writer}: {reason}")
            else:
                state, why = self.read(OURS, writer, kind.data_type, wanted)
                state = "fails" if state == "reader fails" else state
                outcome = Outcome(f"v2: {name}", writer, OURS, state, why)
            self.outcomes.append(outcome)
        self.clear()

    def clear(self) -> None:
        for name in self.workers:
            shutil.rmtree(self.folder / name, ignore_errors=True)


def judge(
    writer: str,
    reader: str,
    refused: dict[str, str | None],
    seen: dict[tuple[str, str], tuple[str, str]],
) -> tuple[str, str]:
    """What one pair counts as.

    A reading peer's failure is its own if it reads that array from nobody, itself included. A
    writing peer is to blame if it cannot read its own array back. All else is our failure, where
    we are one of the two.
    """
    if (reason := refused[writer]) is not None:
        return ("fails" if writer == OURS else "peer cannot"), f"{writer}: {reason}"
    state, why = seen[writer, reader]
    if state == "equal":
        return state, why
    why = f"{reader} reads what {writer} wrote: {why}"
    read_by_it = [state for (_, r), (state, _) in seen.items() if r == reader]
    if reader != OURS and "equal" not in read_by_it:
        return "peer cannot", why
    if writer != OURS and seen[writer, writer][0] != "equal":
        return "peer cannot", why
    if OURS not in (writer, reader):
        return "peers differ", why
    return ("different" if state == "different" else "fails"), why


def kinds_of_v2() -> dict[str, Type]:
    """The types by their spelling."""
    return {repr(kind.data_type): kind for kind in TYPES}


def run(settings: Settings, report: Report) -> None:
    build()
    OUT.mkdir(exist_ok=True)
    kinds = TYPES[::3] if settings.quick else TYPES
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=OUT, prefix="interop-")))
        workers = {OURS: stack.enter_context(ours())}
        workers |= {name: stack.enter_context(peer(name)) for name in PEERS}
        for worker in workers.values():
            report.versions |= worker.ask("versions")
        matrix = Matrix(workers, folder, settings.seed)
        for kind in kinds:
            report.say(f"interop: {kind.label}")
            for case in cases(kind):
                if settings.wants(case.name):
                    matrix.run(case)
        report.say("interop: Zarr v2")
        spelled = kinds_of_v2()
        for name, data_type, spec in _v2.specs():
            kind = spelled[repr(data_type)]
            if settings.wants(f"v2: {name}") and (kind in kinds or not settings.quick):
                matrix.run_v2(name, kind, spec)
    present(matrix.outcomes, report)


def present(outcomes: list[Outcome], report: Report) -> None:
    """The matrix, the peers' limits and the must-show line."""
    report.rows = [vars(outcome) for outcome in outcomes]
    grid: dict[str, dict[str, list[Outcome]]] = defaultdict(lambda: defaultdict(list))
    for outcome in outcomes:
        kind, chain, *layout = outcome.case.split(", ")
        if kind.startswith("v2: "):
            kind, chain, layout = kind.removeprefix("v2: ").split(" ")[0], "Zarr v2", []
        if kind.startswith("{"):
            kind, chain, *layout = f"{kind}, {chain}", *layout
        special = len(layout) > 1 or layout == ["shards in shards"]
        grid[kind]["other shards" if special else chain][:0] = [outcome]
    columns = list(dict.fromkeys(chain for line in grid.values() for chain in line))
    columns.sort(key=lambda name: (name == "Zarr v2", name == "other shards"))

    def shown(cell: list[Outcome]) -> str:
        possible = [o for o in cell if o.state in ("equal", "different", "fails")]
        equal = sum(o.state == "equal" for o in possible)
        return f"{equal}/{len(possible)}" if cell else "–"

    lines = [[kind, *(shown(line[column]) for column in columns)] for kind, line in grid.items()]
    print("Cells that are equal, of those that the peers can do (writer × reader, plain and sharded):\n")
    report.table(["data type", *(short(column) for column in columns)], lines)

    pairs = Counter((o.writer, o.reader, o.state) for o in outcomes)
    states = ("equal", "different", "fails", "peer cannot", "peers differ")
    names = dict.fromkeys((o.writer, o.reader) for o in outcomes)
    report.table(
        ["writer", "reader", *states],
        [[*pair, *(pairs[*pair, state] for state in states)] for pair in names],
    )

    reasons: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.state in ("peer cannot", "peers differ"):
            reasons[general(outcome.reason)].append(outcome)
    if reasons:
        print("What peers cannot do, with their errors:\n")
        ranked = sorted(reasons.items(), key=lambda item: -len(item[1]))
        report.table(
            ["cells", "what", "for example"],
            [[len(found), clipped(reason), found[0].case] for reason, found in ranked],
        )
    wrong = [o for o in outcomes if o.state in ("different", "fails")]
    for outcome in wrong[:60]:
        print(f"FAILED {outcome.case} [{outcome.writer} → {outcome.reader}]: {outcome.reason[:300]}")
    equal = sum(o.state == "equal" for o in outcomes)
    cannot = sum(o.state in ("peer cannot", "peers differ") for o in outcomes)
    report.show(
        "all cells equal",
        f"{equal} of {len(outcomes) - cannot} ({len(outcomes)} cells, {cannot} beyond a peer)",
        "all",
        not wrong and equal > 0,
    )


def short(column: str) -> str:
    """A column's name that keeps the table narrow."""
    return column.replace("transpose", "transp.").replace("bitshuffle", "bitsh.")


def clipped(reason: str) -> str:
    """The end of a long error says more than its middle."""
    return reason if len(reason) <= 160 else f"{reason[:50]} … {reason[-107:]}"


def general(reason: str) -> str:
    """An error without what differs from array to array."""
    reason = re.sub(r"\[tensorstore_spec=.*", "", reason)
    reason = re.sub(r"is not one of the supported.*", "is not supported", reason)
    reason = reason.replace('Error parsing object member "metadata": ', "")
    reason = reason.replace("FAILED_PRECONDITION: Error opening \"zarr3\" driver: ", "")
    reason = re.sub(r"(/[\w.+-]+){3,}", "…", reason)
    reason = re.sub(r"\[source locations=.*", "", reason)
    return reason.strip()
