"""From the consumer to the agent: batches over a Faust channel, within bounds."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from faust.types import ChannelT

from loopstream.runtime.stats import Stats

Full = Callable[[], bool]
# A consumed record beside its value.
_RECORD_BYTES: Final = 300


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

    Each open partition has an equal share of the room, so that one with a long lag leaves the
    others theirs. Room is counted in bytes as they were fetched; a fetch is taken whole, so the
    bound is exceeded by one fetch a partition at most (1 MiB).
    """

    def __init__(
        self,
        topic: str,
        channel: ChannelT[Any],
        *,
        max_buffered_bytes: int,
        full: Full,
        fail: Callable[[BaseException], None],
        stats: Stats,
    ) -> None:
        self.topic = topic
        self.epoch = 0
        self.waiting = 0
        """Batches of this assignment on the channel, which the agent has not taken yet."""
        self._channel = channel
        self._max_buffered_bytes = max_buffered_bytes
        self._full = full
        self._fail = fail
        self._stats = stats
        self._open: frozenset[int] = frozenset()
        self._records: Counter[int] = Counter()
        self._bytes: Counter[int] = Counter()
        self._room = asyncio.Event()
        self._on_revoke: list[Callable[[], None]] = []

    @property
    def buffered(self) -> int:
        """Records that were taken and are not applied yet."""
        return self._records.total()

    @property
    def full(self) -> bool:
        """Whether the worker has so much to write that nothing more may be applied."""
        return self._full()

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
        share = self._max_buffered_bytes // len(self._open)
        if self._bytes[partition] < share and not self._full():
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
        self._records[partition] += len(records)
        self._bytes[partition] += bytes_of(records)
        self.waiting += 1
        await self._channel.put(Batch(partition, records, generation, self.epoch))  # type: ignore[arg-type]

    def taken(self, batch: Batch) -> None:
        """The agent has a batch. Those of an earlier assignment may be lost with its queue."""
        if batch.epoch == self.epoch:
            self.waiting -= 1

    def applied(self, batch: Batch, records: list[Any]) -> None:
        """The agent is done with some records of a batch."""
        if batch.epoch == self.epoch:
            self._records[batch.partition] -= len(records)
            self._bytes[batch.partition] -= bytes_of(records)
            self.make_room()

    def revoke(self) -> None:
        """Forget all partitions; batches on their way become stale."""
        self.epoch += 1
        self.waiting = 0
        self._records.clear()
        self._bytes.clear()
        self._open = frozenset()
        self._stats.rebalances += 1
        for callback in self._on_revoke:
            callback()

    def fail(self, reason: BaseException) -> None:
        """Give up."""
        self._fail(reason)


def bytes_of(records: list[Any]) -> int:
    """About what records take in memory: their values, and what is around each."""
    return sum(len(record.value or b"") for record in records) + _RECORD_BYTES * len(records)
