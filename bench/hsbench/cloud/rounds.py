"""Interleaved rounds of queries, timed by the workers and metered at the server."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..harness import Report, Unusable
from ..process import Failed, Simulator
from .bill import dollars, requests
from .boxes import Query
from .contenders import Contender, must_answer


@dataclass
class Target:
    """The arrays that a stream of queries asks, and files that hold their cells (none for
    computed arrays)."""

    folder: str
    arrays: list[str]
    data_type: str
    files: list[str]
    shapes: list[list[int]]


@dataclass
class Score:
    """What the measured rounds of one contender took; one entry a round."""

    queries: int
    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    meters: list[dict[str, Any]] = field(default_factory=list)
    fallbacks: int = 0

    @property
    def per_query(self) -> float:
        """Seconds of a query in the median round."""
        return statistics.median(self.seconds) / self.queries

    def per_minute(self) -> list[float]:
        return [60 * self.queries / seconds for seconds in self.seconds]

    def mean(self, of: Callable[[dict[str, Any]], float]) -> float:
        """The mean of a metered figure over all queries."""
        return statistics.fmean(of(meter) for meter in self.meters) / self.queries

    @property
    def bytes(self) -> float:
        return self.mean(lambda meter: meter["bytes_out"])

    @property
    def requests(self) -> float:
        return self.mean(requests)

    def dollars(self, prices: dict[str, Any], place: str) -> float:
        return self.mean(lambda meter: dollars(meter, prices, place))


@dataclass
class Rounds:
    """How many rounds there are, and when a contender is too slow for all of them."""

    sim: Simulator
    report: Report
    measured: int
    warm: int = 1
    # A round that takes longer is measured once: it is far from the others anyway.
    too_slow: float = 40.0

    def run(
        self,
        what: str,
        contenders: list[Contender],
        target: Target,
        draw: Callable[[int], list[Query]],
    ) -> dict[str, Score]:
        """All contenders, round by round, each round in an order of its own."""
        scores: dict[str, Score] = {}
        gone: set[str] = set()
        shuffle = random.Random(what)
        for turn in range(self.warm + self.measured):
            queries = draw(turn)
            order = list(contenders)
            shuffle.shuffle(order)
            for contender in order:
                if contender.name in gone:
                    continue
                try:
                    seconds = self.one(what, contender, target, queries, scores, turn)
                except Failed as reason:
                    must_answer(contender, what, reason)
                    self.report.note(f"{contender.name} cannot do {what}: {reason}")
                    scores.pop(contender.name, None)
                    gone.add(contender.name)
                    continue
                if seconds > self.too_slow and turn >= self.warm and self.measured > 1:
                    self.report.note(
                        f"{contender.name} took {seconds:.0f} s for a round of {what} and was "
                        "measured once."
                    )
                    gone.add(contender.name)
        return scores

    def one(
        self,
        what: str,
        contender: Contender,
        target: Target,
        queries: list[Query],
        scores: dict[str, Score],
        turn: int,
    ) -> float:
        """One round of one contender; returns its seconds."""
        urls = [contender.url(target.folder, array) for array in target.arrays]
        contender.open(urls, target.data_type)
        self.sim.reset()
        answer = contender.worker.ask("queries", queries=queries)
        meter = self.sim.meter()
        more = {} if contender.ours else {"shapes": target.shapes, "data_type": target.data_type}
        checked = contender.worker.ask("check_queries", files=target.files, **more)
        if checked["wrong"] or checked["checked"] != len(queries):
            raise Unusable(
                f"{contender.name} answered {checked['wrong']} of {len(queries)} queries of {what} "
                "with wrong cells."
            )
        seconds = sum(answer["seconds"])
        if turn >= self.warm:
            score = scores.setdefault(contender.name, Score(len(queries)))
            score.seconds.append(seconds)
            score.cpu.append(answer["cpu_seconds"])
            score.meters.append(meter)
            score.fallbacks += answer.get("fallbacks", 0)
        return seconds
