"""Which verdict answers which event: each work's way to tell."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from typing import Any

import msgpack

from benchmarks import work
from loopstream.wire.verdicts import decode_verdict

FOREVER = 2**62


class StreakProbe:
    """The client folds the work itself, so that it knows which events bring a verdict."""

    def __init__(self, runs: int) -> None:
        self._events = work.streak_events(FOREVER, runs)
        self._states: dict[str, list[Any]] = defaultdict(work.streak_new)
        self._due: dict[bytes, deque[float]] = defaultdict(deque)

    def events(self) -> Iterator[tuple[str, Any]]:
        """(run, event) for ever."""
        return self._events

    def pack(self, event: Any) -> bytes:
        """A record of this one event."""
        return work.streak_record([event])

    def sent(self, event: Any, now: float) -> None:
        """The event is about to be handed to the producer."""
        run, call = work.streak_of(event)
        if work.streak_step(self._states[run], call):
            self._due[run.encode()].append(now)

    def received(self, key: bytes, _value: bytes, now: float) -> float | None:
        """Seconds since the event of this verdict; None if it is nobody's."""
        due = self._due.get(key)
        return now - due.popleft() if due else None


class EngineProbe:
    """Verdicts name the event that they are on."""

    def __init__(self, runs: int) -> None:
        self._events = work.engine_events(FOREVER, runs, stuck=True)
        self._sent: dict[str, float] = {}

    def events(self) -> Iterator[tuple[str, Any]]:
        """(run, event) for ever."""
        return self._events

    def pack(self, event: Any) -> bytes:
        """A record of this one event."""
        return bytes(msgpack.packb(event))

    def sent(self, event: Any, now: float) -> None:
        """The event is about to be handed to the producer."""
        if int(event["run"].removeprefix("run-")) % 10 == 0:
            self._sent[event["id"]] = now

    def received(self, _key: bytes, value: bytes, now: float) -> float | None:
        """Seconds since the event of this verdict; None if it is nobody's."""
        # One event may bring several verdicts: the first one counts.
        began = self._sent.pop(decode_verdict(value).evidence.event, None)
        return None if began is None else now - began
