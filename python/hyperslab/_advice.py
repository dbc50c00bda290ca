"""Advice: how an array had better be laid out, from how it is read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from os import PathLike, fspath
from typing import Any

from . import _core
from ._errors import InvalidError

__all__ = ["Advice"]


class Advice:
    """What reads of an array take today, a layout that takes less, and how to get there.

    Printed it is a table; in a notebook it is drawn.
    """

    def __init__(self, core: _core.Advice):
        self._core = core
        self._said: dict[str, Any] | None = None

    @property
    def details(self) -> dict[str, Any]:
        """All of it, as the command line's `--json` has it."""
        if self._said is None:
            self._said = json.loads(self._core.json())
        return self._said

    @property
    def worth_it(self) -> bool:
        """Whether there is something to gain."""
        return self.details["worth_it"]

    @property
    def layout(self) -> dict[str, Any]:
        """Chunks, shards and order of axes of the proposed array."""
        return json.loads(self._core.layout())

    @property
    def layouts(self) -> list[dict[str, Any]]:
        """The same for all copies; the first is the array itself."""
        return self.details["proposed"]["layouts"]

    @property
    def saving(self) -> float:
        """The share of today's cost that the proposal saves."""
        today, proposed = (self.details[which]["expected"]["cost"] for which in ("today", "proposed"))
        return 1.0 - proposed / today if today else 0.0

    @property
    def commands(self) -> list[str]:
        """The commands that do what is proposed."""
        return self.details["commands"]

    def save_html(self, path: Any) -> None:
        """Writes the page with the drawings."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._core.page())

    def __repr__(self) -> str:
        return self._core.text()


def asked(
    boxes: Iterable[Any] | None,
    trace: str | PathLike[str] | None,
    replicas: int,
    budget: str | int | None,
    blocks: str | int | None,
    aligned: bool,
    chunk_bytes: Sequence[str | int],
    whole: bool,
    append: int | Sequence[int] | None,
    any_order: bool,
    shards: str | int | None,
    classes: int,
) -> dict[str, Any]:
    """The keywords of `Array.advise` as the native half takes them."""
    if (boxes is None) == (trace is None):
        raise InvalidError("give either the boxes that are read or a trace", "boxes=[(1, 720, 1440)]")
    least, most = (bytes_of(size) for size in chunk_bytes)
    if isinstance(append, int):
        append = (append, 1)
    return {
        "boxes": [weighed(box) for box in boxes or ()],
        "trace": None if trace is None else fspath(trace),
        "replicas": replicas,
        "budget": None if budget is None else bytes_of(budget),
        "blocks": None if blocks is None else bytes_of(blocks),
        "aligned": aligned,
        "chunk_bytes": (least, most),
        "whole": whole,
        "append": None if append is None else tuple(append),
        "any_order": any_order,
        "shards": None if shards is None else bytes_of(shards),
        "classes": classes,
    }


def bytes_of(size: str | int) -> int:
    return _core.bytes_of(str(size))


def weighed(box: Any) -> tuple[list[int], float]:
    """A box of sides, or a pair of such a box and how often it is read."""
    if len(box) == 2 and not isinstance(box[0], int):
        sides, often = box
        return [int(side) for side in sides], float(often)
    return [int(side) for side in box], 1.0
