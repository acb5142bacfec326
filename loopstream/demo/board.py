"""What is seen of the demo's runs: filled by their agents, read by the view."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

Status = Literal["waiting", "running", "warned", "blocked", "aborted", "done"]


@dataclass(frozen=True, slots=True)
class Seen:
    """One run as its agent experienced it."""

    run: str
    agent: str
    about: str
    loops: bool
    status: Status = "waiting"
    calls: int = 0
    warnings: int = 0
    blocks: int = 0
    detector: str = ""
    count: int = 0
    reason: str = ""

    @property
    def stopped(self) -> bool:
        """The run was blocked or aborted."""
        return self.status in {"blocked", "aborted"}

    @property
    def as_wanted(self) -> bool:
        """Loops are stopped, work is not."""
        return self.stopped == self.loops


Listener = Callable[[Seen, Seen], None]


class Board:
    """Runs by id. ``listener`` hears of each change, as (before, after)."""

    def __init__(self, listener: Listener | None = None) -> None:
        self._lock = threading.Lock()
        self._runs: dict[str, Seen] = {}
        self._listener = listener

    def add(self, seen: Seen) -> None:
        """A run that is about to begin."""
        with self._lock:
            self._runs[seen.run] = seen

    def change(self, run: str, **fields: object) -> None:
        """Set fields of a run."""
        with self._lock:
            before = self._runs[run]
            after = self._runs[run] = replace(before, **fields)  # type: ignore[arg-type]
        if self._listener is not None:
            self._listener(before, after)

    def count(self, run: str, name: Literal["calls", "warnings", "blocks"]) -> int:
        """Add one to a counter of a run; returns it."""
        with self._lock:
            now = int(getattr(self._runs[run], name)) + 1
        self.change(run, **{name: now})
        return now

    def get(self, run: str) -> Seen:
        """One run."""
        with self._lock:
            return self._runs[run]

    def all(self) -> list[Seen]:
        """All runs in the order in which they were added."""
        with self._lock:
            return list(self._runs.values())
