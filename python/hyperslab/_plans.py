"""Plans: what a read would do, and why."""

from __future__ import annotations

import json
from typing import Any

from . import _core

__all__ = ["Plan"]


class Plan:
    """What a read would do for each chunk, what that would take, and what else could be done.

    Printed it is a table; in a notebook it is drawn.
    """

    def __init__(self, core: _core.Plan):
        self._core = core
        self._said: dict[str, Any] | None = None

    @property
    def details(self) -> dict[str, Any]:
        """All of it, as the command line's `--json` has it."""
        if self._said is None:
            self._said = json.loads(self._core.json())
        return self._said

    @property
    def planner(self) -> str:
        return self.details["planner"]

    @property
    def chunks(self) -> list[dict[str, Any]]:
        """What is done for each chunk."""
        return self.details["chunks"]

    @property
    def estimated(self) -> dict[str, Any]:
        """Seconds, dollars, requests, calls and bytes that the plan is expected to take."""
        return self.details["estimate"]

    @property
    def measured(self) -> dict[str, Any] | None:
        """Seconds, requests and bytes that the read took, if it was done."""
        return self.details["measured"]

    @property
    def alternatives(self) -> dict[str, dict[str, Any]]:
        """What other planners would take."""
        return {other["planner"]: other["estimate"] for other in self.details["alternatives"]}

    @property
    def copies(self) -> dict[str | None, dict[str, Any]]:
        """What the original (`None`) and each replica would take; empty if there are no replicas."""
        return {copy["name"]: copy["estimate"] for copy in self.details["copies"]}

    @property
    def answered_by(self) -> str | None:
        """The replica that answers; `None` is the original."""
        chosen = (copy["name"] for copy in self.details["copies"] if copy["chosen"])
        return next(chosen, None)

    def save_html(self, path: Any) -> None:
        """Writes the drawings as a page."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._core.page())

    def __repr__(self) -> str:
        return self._core.text()

    def _repr_html_(self) -> str:
        return self._core.part()
