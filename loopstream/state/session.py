"""One history list per session, as the reference keeps it: runs evict each other's records.

Live, each run evicts its own (an intended difference, see docs/adr). The shared vectors are
recorded on whole sessions, so conformance orders the records of all runs here.
"""

from __future__ import annotations

from collections import deque

from loopstream.state.history import History


class SessionHistories:
    """Histories of a session's runs with one shared size."""

    def __init__(self) -> None:
        self._order: deque[History] = deque()
        self._runs: dict[str, History] = {}

    def __len__(self) -> int:
        return len(self._order)

    def of(self, scope: str) -> History:
        """The history of one run scope."""
        return self._runs.setdefault(scope, History())

    def grew(self, history: History, size: int) -> None:
        """Note a record appended to ``history``, and evict the session's oldest beyond ``size``."""
        self._order.append(history)
        self.trim(size)

    def trim(self, size: int) -> None:
        """Evict the oldest records of all beyond ``size``, whichever run they belong to."""
        while len(self._order) > size:
            self._order.popleft().evict_oldest()
