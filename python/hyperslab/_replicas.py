"""Replicas: copies of an array with other layouts, which answer the reads that they are cheaper for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from . import _core
from ._layouts import codecs_of, numbers, sides_of

__all__ = ["Refreshed", "Replica"]


@dataclass(frozen=True)
class Replica:
    """A copy of an array, laid out and encoded in its own way."""

    name: str
    """Its name among the replicas of the array."""
    url: str
    """Where it is: an ordinary Zarr array."""
    complete: bool
    """False as long as not all cells were copied; it answers no reads until then."""
    marked: int
    """Cells that it does not answer for: somebody writes them, or they could not be refreshed."""
    chunks: tuple[int, ...]
    shards: tuple[int, ...] | None
    codecs: list[dict[str, Any]]
    objects: int
    """Objects that it had when it was filled."""
    bytes: int
    """Their bytes."""


@dataclass(frozen=True)
class Refreshed:
    """What refreshing came to."""

    clean: bool
    """No cell of any replica is old. Otherwise somebody kept writing: refresh again."""
    foreign: int
    """Objects of the original that programs without Hyperslab had changed."""
    filled: list[str]
    """Replicas that had not been filled, and now are."""


def replica_of(said: dict[str, Any]) -> Replica:
    shards = said["shards"]
    return Replica(
        **said | {"chunks": tuple(said["chunks"]), "shards": None if shards is None else tuple(shards)}
    )


def replicas(array: _core.Array) -> list[Replica]:
    return [replica_of(said) for said in json.loads(array.replicas())]


def create_replica(
    array: _core.Array,
    name: str | None,
    chunks: int | Sequence[int] | None,
    shards: int | Sequence[int] | None,
    compression: Any,
    order: Sequence[int] | None,
) -> Replica:
    rank = len(array.shape)
    if name is None:
        taken = {replica.name for replica in replicas(array)}
        name = next(free for n in range(1, len(taken) + 2) if (free := f"r{n}") not in taken)
    spec = {
        "chunks": sides_of(chunks, rank, "chunks"),
        "shards": sides_of(shards, rank, "shards"),
        "compression": codecs_of(compression),
        "order": None if order is None else numbers(order, "order"),
    }
    return replica_of(json.loads(array.create_replica(name, json.dumps(spec))))


def refresh_replicas(array: _core.Array, abandoned: float) -> Refreshed:
    return Refreshed(**json.loads(array.refresh_replicas(abandoned)))
