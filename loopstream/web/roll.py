"""The newest summary of each run, within bounds."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator
from typing import Final

from loopstream.events.summary import RunSummary

MAX_RUNS: Final = 20_000
MAX_BYTES: Final = 64 * 1024 * 1024
LIVE: Final = frozenset(("active", "warned", "blocked"))
"""Standings in which a run may still call a tool."""


class Roll:
    """Runs by scope key; beyond the bounds those are forgotten that were silent for longest.

    Args:
        idle_ms: silence after which workers forget a run; it is no longer counted as live.
    """

    def __init__(self, idle_ms: int, max_runs: int = MAX_RUNS, max_bytes: int = MAX_BYTES) -> None:
        self.forgotten = 0
        self._idle_ms = idle_ms
        self._max_runs = max_runs
        self._max_bytes = max_bytes
        self._bytes = 0
        self._runs: OrderedDict[str, tuple[RunSummary, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._runs)

    def put(self, scope: str, summary: RunSummary | None, size: int) -> None:
        """Take a summary of ``size`` bytes up; None: the run is forgotten."""
        before = self._runs.pop(scope, None)
        self._bytes -= 0 if before is None else before[1]
        if summary is None:
            return
        self._runs[scope] = (summary, size)
        self._bytes += size
        while len(self._runs) > self._max_runs or self._bytes > self._max_bytes:
            _, (_, freed) = self._runs.popitem(last=False)
            self._bytes -= freed
            self.forgotten += 1

    def get(self, scope: str) -> RunSummary | None:
        """A run's newest summary."""
        found = self._runs.get(scope)
        return None if found is None else found[0]

    def newest(self) -> Iterator[RunSummary]:
        """All that are known, the one heard of last first."""
        return (summary for summary, _ in reversed(self._runs.values()))

    def live_of(self, agent: str, now_ms: int) -> list[RunSummary]:
        """Runs of an agent that may still call a tool."""
        return [run for run in self.newest() if run.agent == agent and self.is_live(run, now_ms)]

    def is_live(self, run: RunSummary, now_ms: int) -> bool:
        """Whether a run may still call a tool, as far as is known."""
        return run.status in LIVE and now_ms - run.last_event < self._idle_ms

    def counts(self, now_ms: int) -> dict[str, int]:
        """Live runs by standing, and all that were ended by an abort.

        ``shadow``: those that would be blocked, were their deployment not in shadow.
        """
        tally: Counter[str] = Counter()
        for run in self.newest():
            if run.status == "aborted" or self.is_live(run, now_ms):
                tally[run.status] += 1
                tally["shadow"] += run.mode == "shadow" and run.status == "blocked"
        return {
            "active": tally["active"] + tally["warned"] + tally["blocked"],
            "blocked": tally["blocked"] - tally["shadow"],
            "shadow": tally["shadow"],
            "aborted": tally["aborted"],
        }
