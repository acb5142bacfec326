"""A runner at work: the hub and its two threads."""

from __future__ import annotations

import atexit
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Final, Self

from loopstream.sdk.hub import Hub
from loopstream.sdk.options import Options
from loopstream.sdk.ports import In, Out
from loopstream.sdk.threads import Reader, Sender
from loopstream.wire.connection import Connection

log: Final = logging.getLogger("loopstream.sdk")

_JOIN_S: Final = 3.0
_EXIT_S: Final = 2.0


class Machine:
    """Starts at once and never fails to: without Kafka it keeps trying.

    Args:
        options: the runner's settings.
        connect_out: makes the producer; called in the sender's thread, again after each failure.
        connect_in: makes the reader of verdicts; likewise.
    """

    def __init__(
        self, options: Options, connect_out: Callable[[], Out], connect_in: Callable[[], In]
    ) -> None:
        self.hub = Hub(options, time.monotonic, lambda: time.time_ns() // 1_000_000)
        self._threads = (Sender(self.hub, connect_out), Reader(self.hub, connect_in))
        self._closed = False
        for thread in self._threads:
            thread.start()
        # A script that ends without closing its runner still sends what it can.
        atexit.register(self.close, _EXIT_S)

    @classmethod
    def on_kafka(cls, connection: Connection, options: Options) -> Self:
        """The machine on a real cluster."""
        # kafka-python takes its time to load, and tests of the rest don't need it.
        from loopstream.sdk.link import KafkaIn, KafkaOut  # noqa: PLC0415

        return cls(
            options,
            partial(KafkaOut, connection, f"{options.prefix}.events", options.headers),
            partial(KafkaIn, connection, f"{options.prefix}.verdicts"),
        )

    def close(self, timeout: float) -> bool:
        """Send what waits, then stop; True if all of it was confirmed.

        Takes up to ``timeout`` seconds for the sending and a few more for the threads to end.
        """
        if self._closed:
            return self.hub.outbox.pending == 0
        self._closed = True
        atexit.unregister(self.close)
        flushed = self.hub.outbox.drain(timeout)
        for thread in self._threads:
            thread.stop()
        for thread in self._threads:
            thread.join(_JOIN_S)
        if not flushed:
            lost = self.hub.outbox.pending
            self.hub.counters.add("events_dropped", lost)
            log.warning("Closed with %d events that Kafka has not confirmed.", lost)
        return flushed
