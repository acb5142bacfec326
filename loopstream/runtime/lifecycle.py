"""What one who starts a worker wants to read: that it is ready, has stopped, that Kafka is away.

These lines are shown at every log level up to ``warning``; the client library's own about a broker
that is away are thinned out (`loopstream.config.logs`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any, Final

from loopstream.config.logs import LIFECYCLE
from loopstream.runtime.hardening.stall import clock

AWAY_S: Final = 2.0
"""Time without any connection after which it is told; between two connections there is none."""

log: Final = logging.getLogger(LIFECYCLE)


class Lifecycle:
    """Fed once a second with what a worker has; says what changed.

    Args:
        topic: whose partitions are owned.
        servers: brokers that were asked for, as people know them.
        now: seconds; a clock that goes on while the machine sleeps.
    """

    def __init__(self, topic: str, servers: str, now: Callable[[], float] = clock) -> None:
        self._topic = topic
        self._servers = servers
        self._now = now
        self._owned: tuple[int, ...] | None = None
        self._connected: float | None = None
        self._away = False

    def look(self, owned: Iterable[int] | None, *, connected: bool) -> None:
        """Look once.

        Args:
            owned: partitions that are assigned and recovered; None: that is not over yet.
            connected: whether any broker is.
        """
        self._look_at_brokers(connected)
        ready = None if owned is None else tuple(sorted(owned))
        if ready is None or ready == self._owned or not connected:
            return
        self._owned = ready
        if ready:
            log.info("ready: partitions %s of %s", spans(ready), self._topic)
        else:
            log.info("ready: other workers have all partitions of %s", self._topic)

    def stopped(self) -> None:
        """The worker has stopped in order."""
        if self._owned is not None:
            log.info("stopped: all that was judged of %s is committed", self._topic)

    def _look_at_brokers(self, connected: bool) -> None:
        now = self._now()
        if self._connected is None:
            self._connected = now
        silent = now - self._connected
        if connected:
            if self._away:
                log.warning("Kafka answers again (%s), after %.0f s", self._servers, silent)
            self._away, self._connected = False, now
        elif silent >= AWAY_S and not self._away:
            self._away = True
            log.error(
                "Kafka does not answer (%s); nothing is lost, the worker goes on when it is back",
                self._servers,
            )


def connected(consumer: Any) -> bool:
    """Whether Faust's consumer has a connection to any broker; True where it can't be known.

    Asks for what aiokafka keeps to itself: what it says aloud are only log lines.
    """
    thread = getattr(consumer, "_thread", None)
    client = getattr(getattr(thread, "_consumer", None), "_client", None)
    held = getattr(client, "_conns", None)
    if held is None:
        return True
    return any(connection.connected() for connection in list(held.values()))


def spans(numbers: Iterable[int]) -> str:
    """Ascending numbers as people write them: ``0-3, 7``."""
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in _spans(list(numbers)))


def _spans(numbers: list[int]) -> Iterator[tuple[int, int]]:
    if not numbers:
        return
    breaks = [at for at, (a, b) in enumerate(pairwise(numbers), 1) if b != a + 1]
    for first, last in pairwise([0, *breaks, len(numbers)]):
        yield numbers[first], numbers[last - 1]
