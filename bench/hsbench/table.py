"""Aligned plain-text tables, legible without colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def text(value: Any) -> str:
    """A cell as people read it."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.2f}"
    return str(value)


def render(header: Sequence[str], lines: Sequence[Sequence[Any]]) -> str:
    """Columns as wide as their widest cell; numbers to the right, words to the left."""
    cells = [[text(value) for value in line] for line in lines]
    widths = [
        max([len(name), *(len(line[i]) for line in cells)]) for i, name in enumerate(header)
    ]
    numeric = [
        bool(lines) and all(isinstance(line[i], (int, float, type(None))) for line in lines)
        for i in range(len(header))
    ]

    def one(line: Sequence[str]) -> str:
        parts = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric)
        ]
        return "  ".join(parts).rstrip()

    rule = "  ".join("-" * width for width in widths)
    return "\n".join([one(header), rule, *map(one, cells)])
