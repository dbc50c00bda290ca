"""Tables and must-show lines of `torch`, from the scores of a workload.

Invariant: ours is compared with those that give a uniformly random order too, with as many workers.
"""

from __future__ import annotations

from typing import Any

from ..cloud.floor import BENCH
from ..harness import OURS, Report
from .runs import EPOCHS, Score
from .systems import CACHED
from .workloads import Workload

FASTER = 1.7
BYTES = 1.1
HEADER = [
    "system",
    "workers",
    "samples/s",
    "(min–max)",
    "first batch, s",
    "MB epoch 1",
    "MB epoch 2",
    "MB epoch 3",
    "requests epoch 1",
]


def floors(workload: Workload) -> list[list[Any]]:
    """What no loader can beat: bytes over the line, and a round trip for each epoch with bytes."""
    kinds = [
        ("floor: wanted bytes, once", workload.wanted, 1, workload.batch * workload.sample_bytes),
        ("floor: wanted bytes, each epoch", workload.wanted, EPOCHS, workload.batch * workload.sample_bytes),
        ("floor: all bytes, once", workload.stored, 1, workload.stored),
    ]  # fmt: skip
    lines = []
    for name, size, times, begin in kinds:
        seconds = times * (BENCH.latency + size / BENCH.total)
        fetched = [size / 1e6 if epoch < times else 0.0 for epoch in range(EPOCHS)]
        first = BENCH.latency + begin / BENCH.total
        lines.append([name, None, EPOCHS * workload.samples / seconds, "", first, *fetched, None])
    return lines


def line(score: Score) -> list[Any]:
    """A line of the table."""
    rates = score.rates()
    fetched = [score.bytes(epoch) for epoch in range(EPOCHS)]
    return [
        score.system.name + ("" if score.system.exact else " *"),
        score.workers,
        score.rate,
        f"{min(rates):.1f}–{max(rates):.1f}" if len(rates) > 1 else "",
        score.first_batch,
        *(None if size is None else size / 1e6 for size in fetched),
        score.requests(0),
    ]


def show(report: Report, workload: Workload, scores: list[Score]) -> None:
    """Prints the table of a workload and keeps its figures."""
    mega = 1e6
    print(
        f"{workload.name}: {workload.samples} samples of {workload.sample_bytes / 1e3:.1f} kB an epoch, "
        f"{workload.wanted / mega:.0f} of {workload.stored / mega:.0f} MB; batches of {workload.batch}\n"
    )
    ordered = sorted(scores, key=lambda score: -score.rate)
    report.table(HEADER, [*floors(workload), *map(line, ordered)])
    for score in scores:
        report.rows.append(
            {
                "row": f"{workload.name}, {score.system.name}, {score.workers} workers",
                "workload": workload.name,
                "system": score.system.name,
                "workers": score.workers,
                "exact": score.system.exact,
                "samples_per_second": score.rate,
                "first_batch_seconds": score.first_batch,
                "wanted_bytes": workload.wanted,
                "stored_bytes": workload.stored,
                "complete": score.complete,
                "runs": score.runs,
            }
        )


def state(report: Report, workload: Workload, scores: list[Score]) -> None:
    """The goals of a workload."""
    for workers in sorted({score.workers for score in scores}):
        among = [score for score in scores if score.workers == workers]
        title = f"{workload.name}, {workers} workers"
        ours = {s.system.name: s for s in among if s.system.ours}
        others = [s for s in among if s.system.exact and not s.system.ours]
        # Like with like: what was downloaded is there in later epochs too, as what our cache holds.
        for name, among in (
            (CACHED, [s for s in others if s.system.keeps]),
            (OURS, [s for s in others if not s.system.keeps]),
        ):
            if name in ours and among:
                faster(report, title, ours[name], among)
        if OURS in ours and others:
            best = max(others, key=lambda s: s.rate)
            ratio = ours[OURS].rate / best.rate
            report.note(f"{title}: without our cache we are {ratio:.2f} × {best.system.name}.")
        for name in (OURS, CACHED):
            if name in ours:
                few_bytes(report, f"{title}: {name}", ours[name].bytes(0), workload.wanted)


def faster(report: Report, title: str, mine: Score, others: list[Score]) -> None:
    """Ours against the best of others that give the same randomness."""
    best = max(others, key=lambda s: s.rate)
    ratio = mine.rate / best.rate
    report.show(
        f"{title}: {mine.system.name} ÷ {best.system.name}",
        round(ratio, 2),
        f"at least {FASTER}",
        ratio >= FASTER,
    )


def few_bytes(report: Report, title: str, fetched: float | None, wanted: int) -> None:
    ratio = None if fetched is None else fetched / wanted
    report.show(
        f"{title}, bytes of the first epoch ÷ wanted",
        None if ratio is None else round(ratio, 3),
        f"at most {BYTES}",
        ratio is not None and ratio <= BYTES,
    )
