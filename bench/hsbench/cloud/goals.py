"""The must-show lines of `cloud`, from the scores of its rows.

Invariant: a goal of which a row was not measured is stated as not held, unless rows were chosen
with `--only`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ..harness import Report
from .bill import book
from .contenders import MONEY, OURS, PEERS
from .rounds import Score

SLOWER = 1.07
FASTER = 1.5
ABOVE_FLOOR = 1.15
VERTICAL = 2.5
SHARDS = 1.3
FEWER_BYTES = 9.0


@dataclass
class Row:
    """A row of plain chunks or of shards."""

    name: str
    workload: str
    chunk_mib: float
    sharded: bool
    scores: dict[str, Score]
    floor: float

    def seconds(self, system: str) -> float:
        return self.scores[system].per_query

    def peers(self) -> dict[str, float]:
        return {name: self.seconds(name) for name in PEERS if name in self.scores}

    def best(self) -> tuple[str, float]:
        peers = self.peers()
        name = min(peers, key=peers.__getitem__)
        return name, peers[name]


@dataclass
class Goals:
    """Collects rows, then states what they show."""

    report: Report
    rows: list[Row] = field(default_factory=list)

    def add(self, row: Row) -> None:
        self.rows.append(row)

    def state(self) -> None:
        """States every goal that rows were measured for."""
        plain = [row for row in self.rows if not row.sharded and row.peers()]
        for row in plain:
            self.against_peers(row)
        if plain:
            gains = [row.best()[1] / row.seconds(OURS) for row in plain]
            gain = math.exp(sum(map(math.log, gains)) / len(gains))
            self.report.show(
                f"best peer ÷ ours, geometric mean of {len(plain)} rows",
                round(gain, 2),
                f"at least {FASTER}",
                gain >= FASTER,
            )
        shards = [row for row in self.rows if row.sharded and "tensorstore" in row.scores]
        if shards:
            gains = [row.seconds("tensorstore") / row.seconds(OURS) for row in shards]
            gain = math.exp(sum(map(math.log, gains)) / len(gains))
            self.report.show(
                f"shards: tensorstore ÷ ours, geometric mean of {len(shards)} rows",
                round(gain, 2),
                f"at least {SHARDS}",
                gain >= SHARDS,
            )

    def against_peers(self, row: Row) -> None:
        """The goals of one row of plain chunks."""
        name, seconds = row.best()
        ratio = row.seconds(OURS) / seconds
        self.report.show(
            f"{row.name}: ours ÷ best peer ({name})",
            round(ratio, 3),
            f"at most {SLOWER}",
            ratio <= SLOWER,
        )
        if row.workload != "vertical":
            ratio = row.seconds(OURS) / row.floor
            self.report.show(
                f"{row.name}: ours ÷ covering-range floor",
                round(ratio, 3),
                f"at most {ABOVE_FLOOR}",
                ratio <= ABOVE_FLOOR,
            )
        elif row.chunk_mib >= 16:
            gain = seconds / row.seconds(OURS)
            self.report.show(
                f"{row.name}: best peer ({name}) ÷ ours",
                round(gain, 2),
                f"at least {VERTICAL}",
                gain >= VERTICAL,
            )
        self.money(row)

    def money(self, row: Row) -> None:
        """Over the internet at φ = infinity no peer is cheaper."""
        prices = book("aws")
        mine = row.scores[MONEY].dollars(prices, "internet")
        bills = {name: row.scores[name].dollars(prices, "internet") for name in row.peers()}
        name = min(bills, key=bills.__getitem__)
        self.report.show(
            f"{row.name}: our bill ÷ that of the cheapest peer ({name}), internet, φ = ∞",
            round(mine / bills[name], 3),
            "at most 1",
            mine <= bills[name],
        )


def fewer_bytes(report: Report, stream: str, scores: dict[str, Score]) -> None:
    """The goal of a stream of figure 14 on raw chunks."""
    if "tiledb" not in scores:
        report.show(f"{stream}: TileDB's bytes ÷ ours", None, f"at least {FEWER_BYTES:g}", False)
        return
    ratio = scores["tiledb"].bytes / scores[MONEY].bytes
    report.show(
        f"{stream}: TileDB's bytes ÷ ours (internet, φ = ∞)",
        round(ratio, 2),
        f"at least {FEWER_BYTES:g}",
        ratio >= FEWER_BYTES,
    )
    for_time = scores["tiledb"].bytes / scores[OURS].bytes
    report.note(
        f"{stream}: where only time counts (φ = 0, same region) TileDB's bytes ÷ ours are "
        f"{for_time:.2f}."
    )
