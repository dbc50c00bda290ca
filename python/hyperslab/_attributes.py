"""Attributes of nodes as a mapping."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

import numpy as np

from ._errors import InvalidError

__all__ = ["Attributes", "as_json"]


def plain(value: Any) -> Any:
    """A value of NumPy's as one that JSON has."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, bytes):
        return value.decode()
    raise TypeError(f"an attribute cannot be {type(value).__name__}")


def as_json(attributes: Mapping[str, Any]) -> str:
    """Attributes as text."""
    try:
        return json.dumps(dict(attributes), default=plain, allow_nan=False)
    except (TypeError, ValueError) as reason:
        raise InvalidError(
            f"the attributes cannot be stored: {reason}",
            "attributes are what JSON has: texts, finite numbers, lists and mappings",
        ) from None


class Attributes(MutableMapping[str, Any]):
    """The attributes of an array or a group; changes are written at once."""

    def __init__(self, node: Any):
        self._node = node
        self._known: dict[str, Any] | None = None

    def _all(self) -> dict[str, Any]:
        if self._known is None:
            self._known = json.loads(self._node._live.attributes)
        return self._known

    def _write(self, changed: dict[str, Any]) -> None:
        text = as_json(changed)
        self._node._live.set_attributes(text)
        self._known = json.loads(text)

    def __getitem__(self, name: str) -> Any:
        return self._all()[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._write({**self._all(), name: value})

    def __delitem__(self, name: str) -> None:
        left = dict(self._all())
        del left[name]
        self._write(left)

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def update(self, *args: Any, **more: Any) -> None:
        """Changes several attributes by one write."""
        self._write({**self._all(), **dict(*args, **more)})

    def asdict(self) -> dict[str, Any]:
        """A copy as an ordinary dictionary."""
        return json.loads(json.dumps(self._all()))

    def __repr__(self) -> str:
        return repr(self._all())
