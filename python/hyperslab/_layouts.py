"""How new arrays are laid out, as callers say it and as the engine takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ._errors import InvalidError

__all__ = ["codecs_of", "numbers", "sides_of"]


def sides_of(given: int | Sequence[int] | None, rank: int, what: str) -> list[int] | None:
    """A side for each dimension; one number is that for all of them."""
    if given is None:
        return None
    return [int(given)] * rank if isinstance(given, (int, np.integer)) else numbers(given, what)


def numbers(given: int | Sequence[int], what: str) -> list[int]:
    sides = [given] if isinstance(given, (int, np.integer)) else list(given)
    try:
        sides = [int(side.__index__()) for side in sides]
    except AttributeError:
        raise InvalidError(f"{what} has to be whole numbers, and is {given!r}") from None
    if any(side < 0 for side in sides):
        raise InvalidError(f"{what} {tuple(sides)} has a negative number")
    return sides


def codecs_of(given: Any) -> Any:
    """Codecs as the engine takes them."""
    named = {
        "zstd": {"name": "zstd", "configuration": {"level": 0, "checksum": False}},
        "gzip": {"name": "gzip", "configuration": {"level": 5}},
    }
    if given is None:
        return None
    if given is False or given == "none":
        return []
    if isinstance(given, str):
        name, _, level = given.partition(":")
        if name not in named or (level and not level.removeprefix("-").isdigit()):
            raise InvalidError(
                f"there is no compression {given!r}",
                'give "zstd", "zstd:9", "gzip", False, or codecs as Zarr v3 spells them',
            )
        codec = named[name]
        if level:
            codec["configuration"]["level"] = int(level)
        return [codec]
    return [given] if isinstance(given, Mapping) else list(given)
