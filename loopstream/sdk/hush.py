"""kafka-python logs each failed attempt as an error; a runner's host should not drown in them."""

from __future__ import annotations

import logging
import threading
import time
from typing import Final

_NOISY: Final = (
    "kafka.cluster",
    "kafka.consumer.fetcher",
    "kafka.net.connection",
    "kafka.net.manager",
    "kafka.net.transport",
    "kafka.producer.sender",
)
# Says that a consumer without a group commits no offsets: that is how ours is meant.
_POINTLESS: Final = "kafka.coordinator.consumer"
_EVERY_S: Final = 60.0
_OURS: Final = ("loopstream-sender", "loopstream-reader")


class Hush(logging.Filter):
    """Lets one record a minute of each logger through, of those from the threads named.

    Other clients in the process log as ever.
    """

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[str] = set(_OURS)
        self._lock = threading.Lock()
        self._last: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is to be logged."""
        if record.threadName not in self.threads or record.levelno < logging.WARNING:
            return True
        if record.name == _POINTLESS:
            return False
        now = time.monotonic()
        with self._lock:
            last = self._last.get(record.name)
            if last is not None and now - last < _EVERY_S:
                return False
            self._last[record.name] = now
        return True


_hush: Final = Hush()


def hush(client_id: str) -> None:
    """Thin out what kafka-python logs for the clients with this id; once is enough."""
    _hush.threads |= {f"kafka-io-{client_id}", f"{client_id}-network-thread"}
    for name in (*_NOISY, _POINTLESS):
        # Adding it again changes nothing.
        logging.getLogger(name).addFilter(_hush)
