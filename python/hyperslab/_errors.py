"""What can go wrong: a tree of exceptions under `Error`, each also one of Python's own."""

from __future__ import annotations

__all__ = [
    "ConflictError",
    "DataError",
    "DeadlineError",
    "DeniedError",
    "Error",
    "InternalError",
    "InvalidError",
    "NotFoundError",
    "UnavailableError",
]


class Error(Exception):
    """Anything that Hyperslab reports: one sentence, and often a hint what to do."""

    def __init__(self, message: str = "", hint: str | None = None):
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} (hint: {self.hint})" if self.hint else self.message

    def __reduce__(self) -> tuple[type[Error], tuple[str, str | None]]:
        return type(self), (self.message, self.hint)


class InvalidError(Error, ValueError):
    """The call itself is wrong."""


class NotFoundError(Error, FileNotFoundError, KeyError):
    """What was named does not exist."""


class DeniedError(Error, PermissionError):
    """The store refuses these credentials."""


class ConflictError(Error, RuntimeError):
    """Somebody else changed the object meanwhile: open it again."""


class UnavailableError(Error, OSError):
    """The store did not answer properly: try again later."""


class DeadlineError(UnavailableError, TimeoutError):
    """Something took longer than it may."""


class DataError(Error, ValueError):
    """The stored bytes are not what their metadata promises."""


class InternalError(Error, RuntimeError):
    """A defect of Hyperslab: please report it."""
