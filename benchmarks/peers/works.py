"""The works as plain folds of one partition, for peers that let us hold state ourselves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from benchmarks.work import streak_decode, streak_new, streak_step
from loopstream.partition import Partition
from loopstream.partition.marker import Marker
from loopstream.partition.sources import NoSources
from loopstream.policy.deployment import Deployment
from loopstream.wire.verdicts import encode_model

ENABLED = json.dumps({"enabled": True})


class StreakFold:
    """Streaks in a dictionary."""

    def __init__(self, number: int, partitions: int) -> None:
        self._states: dict[str, list[Any]] = {}
        self._verdicts: list[tuple[bytes, bytes]] = []

    def apply(self, record: Any) -> int:
        """Fold a record; number of events in it."""
        events = streak_decode(record.value)
        states = self._states
        for run, call in events:
            state = states.get(run)
            if state is None:
                state = states[run] = streak_new()
            if streak := streak_step(state, call):
                self._verdicts.append((run.encode(), b"%d" % streak))
        return len(events)

    def take_verdicts(self) -> list[tuple[bytes, bytes]]:
        """Verdicts since the last call."""
        taken, self._verdicts = self._verdicts, []
        return taken


class EngineFold:
    """Our whole fold, with nothing stored."""

    def __init__(self, number: int, partitions: int) -> None:
        marker = Marker(number, settings={"*": ENABLED}).pack()
        deployment = Deployment("bench")
        self._fold = Partition(deployment, number, partitions, {}, NoSources(), state=marker)

    def apply(self, record: Any) -> int:
        """Fold a record; number of events in it."""
        before = self._fold.counts["applied"]
        self._fold.apply(record)
        return self._fold.counts["applied"] - before

    def take_verdicts(self) -> Iterator[tuple[bytes, bytes]]:
        """Verdicts since the last call."""
        taken, self._fold.verdicts = self._fold.verdicts, []
        for scope, verdict in taken:
            yield scope.encode(), encode_model(verdict)
