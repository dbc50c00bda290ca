"""Groups of arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from . import _core
from ._array import Array
from ._attributes import Attributes
from ._errors import InvalidError, NotFoundError
from ._options import session_of, settings_of

__all__ = ["Group", "node_of"]


def node_of(core: _core.Array | _core.Group) -> Array | Group:
    """An array or a group."""
    return Array(core) if isinstance(core, _core.Array) else Group(core)


class Group(Mapping[str, Any]):
    """A group in a store or a file: a mapping of names to arrays and groups.

    >>> import hyperslab as hs
    >>> g = hs.create_group("memory://tour/g.zarr")
    >>> a = g.create("inner/x", shape=(2,), dtype="i4")
    >>> list(g), list(g["inner"])
    (['inner'], ['x'])
    """

    def __init__(self, core: _core.Group):
        self._core: _core.Group | None = core

    @property
    def _live(self) -> _core.Group:
        core = self._core
        if core is None:
            raise InvalidError("the group is closed", "open it again")
        return core

    @property
    def url(self) -> str:
        """Where it is."""
        return self._live.url

    @property
    def attrs(self) -> Attributes:
        """The attributes; changes are written at once."""
        return Attributes(self)

    def __getitem__(self, path: str) -> Any:
        if not isinstance(path, str):
            raise InvalidError(f"a name in a group is a text, and not {type(path).__name__}")
        path = path.strip("/")
        return node_of(self._live.node(path)) if path else self

    def __contains__(self, path: object) -> bool:
        if not isinstance(path, str):
            return False
        try:
            self[path]
        except NotFoundError:
            return False
        return True

    def __iter__(self) -> Iterator[str]:
        return iter([name for name, _ in self._live.children()])

    def __len__(self) -> int:
        return len(self._live.children())

    def items(self) -> Any:
        """Names and nodes, by one request where the metadata is consolidated."""
        return [(name, node_of(core)) for name, core in self._live.children()]

    def values(self) -> Any:
        return [node for _, node in self.items()]

    def arrays(self) -> Iterator[tuple[str, Array]]:
        """Names and arrays directly below."""
        return ((name, node) for name, node in self.items() if isinstance(node, Array))

    def groups(self) -> Iterator[tuple[str, Group]]:
        """Names and groups directly below."""
        return ((name, node) for name, node in self.items() if isinstance(node, Group))

    def walk(self) -> Iterator[tuple[str, Array | Group]]:
        """Paths and nodes below, at any depth."""
        return ((path, node_of(core)) for path, core in self._live.walk())

    def _below(self, path: str) -> str:
        base, question, query = self.url.partition("?")
        return f"{base.rstrip('/')}/{path.strip('/')}{question}{query}"

    def create(self, path: str, **how: Any) -> Array:
        """Makes an array below; see `hyperslab.create`."""
        from ._open import create_in

        made = create_in(self._live.session, self._below(path), **how)
        self._refresh()
        return made

    def create_group(self, path: str, attributes: Mapping[str, Any] | None = None) -> Group:
        """Makes a group below, or opens the one that is there."""
        from ._attributes import as_json

        core = self._live.session.create_group(self._below(path), as_json(attributes or {}))
        self._refresh()
        return Group(core)

    def _refresh(self) -> None:
        """Opens the group again: the metadata that was read with it knows nothing of what is new."""
        core = self._live.session.open(self.url)
        if isinstance(core, _core.Group):
            self._core = core

    def consolidate(self) -> None:
        """Writes the copy of all metadata below anew, so that one request opens all of it."""
        self._live.consolidate()

    def close(self) -> None:
        """Ends the use of this handle."""
        self._core = None

    def __enter__(self) -> Group:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return reopened, (self.url, *settings_of(self._live.session))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Group) and (self is other or self.url == other.url)

    def __hash__(self) -> int:
        return hash(self.url)

    def __repr__(self) -> str:
        return "<hyperslab.Group (closed)>" if self._core is None else f"<hyperslab.Group {self.url}>"


def reopened(url: str, settings: Mapping[str, str], storage: Mapping[str, str]) -> Group:
    """A group that was pickled."""
    core = session_of(settings, storage).open(url)
    if not isinstance(core, _core.Group):
        raise InvalidError(f"{url} was a group, and is an array now")
    return Group(core)
