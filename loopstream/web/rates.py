"""Verdicts over time, for the chart."""

from __future__ import annotations

from collections import Counter
from typing import Final

STEP_MS: Final = 10_000
STEPS: Final = 90
ACTIONS: Final = ("warn", "block", "abort", "release")


class Rates:
    """Counts by action for each ten seconds of the last quarter of an hour (append time)."""

    def __init__(self) -> None:
        self._steps: dict[int, Counter[str]] = {}

    def add(self, append_ms: int, action: str, now_ms: int) -> None:
        """Count a verdict."""
        oldest = now_ms // STEP_MS - STEPS
        if (step := append_ms // STEP_MS) > oldest:
            self._steps.setdefault(step, Counter())[action] += 1
        if len(self._steps) > 2 * STEPS:
            self._steps = {at: seen for at, seen in self._steps.items() if at > oldest}

    def series(self, now_ms: int) -> dict[str, list[int]]:
        """Begin of each step in seconds, and how many of each action fell into it."""
        last = now_ms // STEP_MS
        steps = range(last - STEPS + 1, last + 1)
        counts = [self._steps.get(step, Counter()) for step in steps]
        series = {action: [seen[action] for seen in counts] for action in ACTIONS}
        return {"t": [step * STEP_MS // 1000 for step in steps]} | series

    def last_minute(self, now_ms: int) -> int:
        """Verdicts of the last minute, but answers to gates."""
        last = now_ms // STEP_MS
        steps = (self._steps.get(step, Counter()) for step in range(last - 5, last + 1))
        return sum(seen[action] for seen in steps for action in ACTIONS)
