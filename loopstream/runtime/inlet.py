"""From the consumer to the agent: batches over a Faust channel, within bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from faust.types import ChannelT

from loopstream.runtime.stats import Stats

Full = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive records of one partition."""

    partition: int
    records: list[Any]
    generation: int
    """Group generation in which they were fetched."""
    epoch: int
    """Assignment that they belong to; in any other they are stale."""


class ChannelInlet:
    """Puts batches on the agent's channel, and says when no more can be taken.

    Room is counted in records, so that a fetch of any size is taken whole: the bound is exceeded
    by one fetch at most (1 MiB a partition).
    """

    def __init__(
        self,
        topic: str,
        channel: ChannelT[Any],
        *,
        max_buffered: int,
        full: Full,
        fail: Callable[[BaseException], None],
        stats: Stats,
    ) -> None:
        self.topic = topic
        self.epoch = 0
        self.buffered = 0
        self._channel = channel
        self._max_buffered = max_buffered
        self._full = full
        self._fail = fail
        self._stats = stats
        self._open: frozenset[int] = frozenset()
        self._room = asyncio.Event()
        self._on_revoke: list[Callable[[], None]] = []

    def on_revoke(self, callback: Callable[[], None]) -> None:
        """Have ``callback`` called, synchronously, when the partitions are taken away."""
        self._on_revoke.append(callback)

    def open(self, partitions: frozenset[int]) -> None:
        """Take batches of these partitions from now on."""
        self._open = partitions
        self.make_room()

    def accepts(self, partition: int) -> bool:
        """Whether records of a partition can be taken now."""
        if partition not in self._open:
            return False
        if self.buffered < self._max_buffered and not self._full():
            return True
        self._room.clear()
        self._stats.blocked += 1
        return False

    def make_room(self) -> None:
        """Something was taken away: look again."""
        self._room.set()

    async def wait_room(self, timeout_s: float) -> None:
        """Wait until there may be room."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._room.wait(), timeout_s)
        self._room.clear()

    async def deliver(self, partition: int, records: list[Any], generation: int) -> None:
        """Put a batch on the channel."""
        self.buffered += len(records)
        await self._channel.put(Batch(partition, records, generation, self.epoch))  # type: ignore[arg-type]

    def applied(self, batch: Batch, count: int) -> None:
        """The agent is done with so many records of a batch."""
        if batch.epoch == self.epoch:
            self.buffered -= count
            self.make_room()

    def revoke(self) -> None:
        """Forget all partitions; batches on their way become stale."""
        self.epoch += 1
        self.buffered = 0
        self._open = frozenset()
        self._stats.rebalances += 1
        for callback in self._on_revoke:
            callback()

    def fail(self, reason: BaseException) -> None:
        """Give up."""
        self._fail(reason)
