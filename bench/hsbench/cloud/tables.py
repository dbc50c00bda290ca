"""Scores as lines of a table and as rows of the report."""

from __future__ import annotations

import statistics
from typing import Any

from ..harness import Report
from .bill import book
from .rounds import Score

HEADER = [
    "system",
    "queries/min",
    "(min–max)",
    "queries/$",
    "queries/$ internet",
    "MB/query",
    "requests/query",
    "× floor",
]


def per_dollar(dollars: float) -> float | None:
    """Queries a dollar buys; None where nothing costs anything."""
    return None if dollars == 0 else 1 / dollars


def line(name: str, score: Score, floor: float, prices: dict[str, Any]) -> list[Any]:
    """A line of the table of one row."""
    per_minute = score.per_minute()
    return [
        name,
        statistics.median(per_minute),
        f"{min(per_minute):.1f}–{max(per_minute):.1f}",
        per_dollar(score.dollars(prices, "same_region")),
        per_dollar(score.dollars(prices, "internet")),
        score.bytes / 1e6,
        score.requests,
        score.per_query / floor,
    ]


def floor_line(floor: float, sizes: list[int], queries: int) -> list[Any]:
    """The floor as a line of the same table: sizes are the covering ranges of all queries."""
    return [
        "floor: one covering range a chunk",
        60 / floor,
        "",
        None,
        None,
        sum(sizes) / queries / 1e6,
        len(sizes) / queries,
        1.0,
    ]


def show_row(
    report: Report,
    name: str,
    scores: dict[str, Score],
    floor: float,
    sizes: list[int],
    queries: int,
    prices: str = "aws",
) -> None:
    """Prints the table of one row and keeps its figures. `floor` is in seconds a query; `sizes`
    are the covering ranges of `queries` queries."""
    charges = book(prices)
    print(f"{name}\n")
    ordered = sorted(scores.items(), key=lambda item: item[1].per_query)
    lines = [line(system, score, floor, charges) for system, score in ordered]
    report.table(HEADER, [floor_line(floor, sizes, queries), *lines])
    report.rows.append(
        {
            "row": name,
            "floor_seconds_per_query": floor,
            "floor_bytes_per_query": sum(sizes) / queries,
            "systems": {
                system: {
                    "queries_per_round": score.queries,
                    "seconds": score.seconds,
                    "cpu_seconds": score.cpu,
                    "queries_per_minute": statistics.median(score.per_minute()),
                    "dollars_per_query": score.dollars(charges, "same_region"),
                    "dollars_per_query_internet": score.dollars(charges, "internet"),
                    "bytes_per_query": score.bytes,
                    "requests_per_query": score.requests,
                    "fallbacks": score.fallbacks,
                    "meters": score.meters,
                }
                for system, score in scores.items()
            },
        }
    )
