"""HDF5 files of every kind, as the programs that people use write them.

A case is a function that writes files into a folder and says which features they have. Cases are
listed by `cases()`; each writes one main file, and others beside it where it needs them (sources of
virtual datasets, external data, linked files).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Case:
    """One file: its name, what it shows, and how it is written."""

    name: str
    features: frozenset[str]
    write: Callable[[Path], None]


def cases() -> Iterator[Case]:
    """All cases, in a fixed order."""
    from . import hierarchy, layouts, libraries, types, virtual

    for module in (types, layouts, hierarchy, virtual, libraries):
        yield from module.cases()
