"""What the runner's threads need of Kafka; `loopstream.sdk.link` is Kafka, tests have their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from loopstream.sdk.frames import Frame

Done = Callable[[Exception | None], None]


class Refused(Exception):  # noqa: N818 - what Kafka did
    """Kafka will never take this frame (too large for the topic): sending it again is no use."""


class Record(NamedTuple):
    """A record of the verdict topic."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    content_type: bytes | None = None
    signature: bytes | None = None
    key_id: bytes | None = None


class Out(Protocol):
    """A producer of the events topic."""

    @property
    def partitions(self) -> int:
        """How many partitions the topic has."""
        ...

    def send(self, frame: Frame, done: Done) -> None:
        """Send a frame; ``done`` is called once, from any thread, with the error or None.

        The error is `Refused` if there is no use in another attempt.
        """
        ...

    def close(self, timeout: float) -> None:
        """Let go of the connection within ``timeout`` seconds or so; never raises."""
        ...


class In(Protocol):
    """A reader of the verdict topic. Used by one thread."""

    def ends(self, partitions: Iterable[int]) -> Mapping[int, int]:
        """The offset that the next record of each partition will have; raises if unreachable."""
        ...

    def assign(self, positions: Mapping[int, int]) -> None:
        """Read these partitions, each from an offset on."""
        ...

    def poll(self, timeout: float) -> Sequence[Record]:
        """The next records; waits up to ``timeout`` seconds for them."""
        ...

    def close(self) -> None:
        """Let go of the connection; never raises."""
        ...
