"""Opening the partitions of a new assignment: before the first event, after the last row.

Runs between the end of table recovery and the resumption of the flow.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from loopstream.policy.deployment import Deployment
from loopstream.runtime.changelog import Changelog
from loopstream.runtime.fold import Fold, FoldFactory
from loopstream.runtime.lanes import Lane
from loopstream.runtime.ports import SendRecord
from loopstream.runtime.rows import PartitionRows
from loopstream.runtime.seal import SEAL_KEY, check_seal, unpack_seal
from loopstream.runtime.sources import Sources
from loopstream.runtime.stats import Stats
from loopstream.runtime.store import RowStore
from loopstream.runtime.topics import Topics
from loopstream.wire.codec import encode_frame
from loopstream.wire.signing import Headers


@dataclass(frozen=True, slots=True)
class Start:
    """Where an events partition starts: its committed offset, and the first one in the log."""

    partition: int
    committed: int | None
    earliest: int
    changelog_next: int
    """Offset after the last changelog record that was recovered."""
    sealed: int | None = None
    """Last offset that the recovered rows include, by their seal."""

    @property
    def offset(self) -> int:
        """Offset that the first record must have.

        A commit that is not told (aiokafka ignores the error of a coordinator that is still
        loading after a restart of its broker) must not mean a start from the beginning: old events
        would be judged again, by the settings of today. Rows, their seal and the verdicts before
        it are durable, so what follows the seal is next.
        """
        told = (-1 if self.sealed is None else self.sealed) + 1
        return max(told if self.committed is None else self.committed, self.earliest)


class Opener:
    """Makes lanes: checks the rows, asserts better ones again, pins fresh partitions.

    Args:
        headers: makes the headers of a record that is appended to the events, of its value.
    """

    def __init__(
        self,
        deployment: Deployment,
        partitions: int,
        factory: FoldFactory,
        marker_key: Callable[[int], bytes],
        store: Callable[[], RowStore],
        sources: Sources,
        topics: Topics,
        stats: Stats,
        send: SendRecord,
        headers: Callable[[bytes], Headers],
    ) -> None:
        self._deployment = deployment
        self._partitions = partitions
        self._factory = factory
        self._marker_key = marker_key
        self._store = store
        self._sources = sources
        self._topics = topics
        self._stats = stats
        self._send = send
        self._headers = headers

    async def open(self, starts: Iterable[Start]) -> list[Lane]:
        """Lanes for these partitions, ready for their first record.

        Raises:
            CorruptStateError: the rows of a partition are incomplete.
        """
        return [await self._open(start) for start in starts]

    def sealed(self, number: int) -> int | None:
        """Last event offset that the rows of a partition include; None: there is no seal."""
        row = self._store().rows(number).get(SEAL_KEY)
        return None if row is None else unpack_seal(row).last_offset

    async def _open(self, start: Start) -> Lane:
        number, rows = start.partition, self._store().rows(start.partition)
        seal = check_seal(number, rows.get(SEAL_KEY), rows.count, start.committed)
        sealed = start.offset - 1 if seal is None else max(start.offset - 1, seal.last_offset)
        changelog = Changelog(
            self._topics.changelog, number, self._send, next_offset=start.changelog_next
        )
        await self._assert_better(number, changelog)
        fold = self._factory(
            self._deployment,
            number,
            self._partitions,
            rows,
            self._sources,
            rows.get(self._marker_key(number)),
        )
        await self._pin(changelog, fold, rows)
        return Lane(
            number,
            fold,
            rows,
            changelog,
            next_offset=start.offset,
            done=start.offset,
            sealed=sealed,
        )

    async def _assert_better(self, number: int, changelog: Changelog) -> None:
        for key, row in self._store().take_better(number):
            await changelog.write(key, row)
            self._stats.reasserted += 1

    async def _pin(self, changelog: Changelog, fold: Fold, rows: PartitionRows) -> None:
        """Fix what is in force before the first event: durable first, then in the log."""
        if fold.pinned:
            return
        pin = fold.pin(int(time.time() * 1000))
        confirmations = []
        for key, row in fold.take_rows():
            confirmations.append(await changelog.write(key, row))
            rows.put(key, row)
        for confirmation in confirmations:
            await confirmation
        value = encode_frame([pin])
        headers = self._headers(value)
        await (await self._send(self._topics.events, None, value, fold.number, headers))
        self._stats.pins += 1
