"""Settings: given with a call, for a block of code, or for the whole program.

>>> import hyperslab as hs
>>> with hs.options(phi=0, cache="64MiB"):
...     pass
"""

from __future__ import annotations

import contextlib
import contextvars
import os
from collections.abc import Iterator, Mapping
from typing import Any

from . import _core
from ._errors import InvalidError

__all__ = ["Session", "options", "set_options", "session_for"]

Session = _core.Session

_current: contextvars.ContextVar[Mapping[str, str]] = contextvars.ContextVar(
    "hyperslab_options", default={}
)
_program: dict[str, str] = {}
_sessions: dict[tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]], Session] = {}


def as_text(value: Any) -> str:
    """A setting as the command line would have it."""
    if isinstance(value, bool):
        return "1" if value else "0"
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def checked(given: Mapping[str, Any]) -> dict[str, str]:
    """Settings as texts; what is None is not set."""
    for name in given:
        if name not in _core.SETTINGS:
            raise InvalidError(
                f"there is no option {name!r}", f"there are {', '.join(_core.SETTINGS)}"
            )
    return {name: as_text(value) for name, value in given.items() if value is not None}


@contextlib.contextmanager
def options(**given: Any) -> Iterator[None]:
    """Settings for everything that is opened or created within the block.

    The names are those of the command line: `planner`, `phi`, `place`, `profile`, `prices`, `frozen`,
    `hedge`, `deadline`, `function`, `memory`, `concurrency`, `cache`, `cache_dir`, `cache_dir_bytes`,
    `cache_fresh`, `consolidated`, `replicas`, `replica_fresh`, `replica_check`, `strict_sources`, `trace`,
    `write_empty`.
    """
    token = _current.set({**_current.get(), **checked(given)})
    try:
        yield
    finally:
        _current.reset(token)


def set_options(**given: Any) -> None:
    """Settings for everything that the program opens from now on."""
    for name, value in given.items():
        checked({name: value})
        if value is None:
            _program.pop(name, None)
        else:
            _program[name] = as_text(value)


def session_for(given: Mapping[str, Any], storage: Mapping[str, str]) -> Session:
    """The session with these settings; the same ones lead to the same session, and to its caches."""
    settings = {**_program, **_current.get(), **checked(given)}
    return session_of(settings, storage)


def session_of(settings: Mapping[str, str], storage: Mapping[str, str]) -> Session:
    """The session with exactly these settings."""
    key = (tuple(sorted(settings.items())), tuple(sorted(storage.items())))
    found = _sessions.get(key)
    if found is None:
        found = _sessions.setdefault(key, Session(dict(settings), dict(storage)))
    return found


def settings_of(session: Session) -> tuple[dict[str, str], dict[str, str]]:
    """What `session_of` made a session with."""
    for (settings, storage), known in _sessions.items():
        if known is session:
            return dict(settings), dict(storage)
    raise InvalidError("this session was not made by hyperslab.open")
