"""The consumer's thread: short fetches, and changelog records as they come.

Answers:

* Upstream lets the broker hold a fetch back for 1.5 s. A broker answers the requests of one
  connection one after the other, so whatever is asked of it meanwhile (ends and beginnings of
  partitions, after each assignment) waits that long. Here it is a tenth of a second.
* aiokafka has one fetch on its way to a node, for all assigned partitions that it holds no records
  of. While those of the changelogs wait to be taken, that is one for the events alone, which have
  nothing to send in a recovery; the changelogs stood still behind it. Here it is soon back.
* aiokafka makes a second object of each record, with eleven fields. Recovery reads four.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread
from faust.types import TP

if TYPE_CHECKING:
    from aiokafka import AIOKafkaConsumer
    from faust.transport.consumer import RecordMap

WAIT_MS: Final = 100
RECOVERING_WAIT_MS: Final = 10


class FetchThread(AIOKafkaConsumerThread):
    """Faust's consumer thread with shorter fetches."""

    def _create_worker_consumer(self, transport: Any) -> AIOKafkaConsumer:
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = WAIT_MS  # noqa: SLF001  # Faust has no setting for it
        return consumer

    async def getmany(
        self,
        active_partitions: set[TP] | None,
        timeout: float,  # noqa: ASYNC109  # upstream's signature
    ) -> RecordMap:
        """Upstream's, with the next fetches as long as suits the moment."""
        fetcher: Any = self._ensure_consumer()._fetcher  # noqa: SLF001
        wait_ms = RECOVERING_WAIT_MS if self.app.in_recovery else WAIT_MS
        fetcher._fetch_max_wait_ms = wait_ms  # noqa: SLF001
        return await super().getmany(active_partitions, timeout)

    async def _fetch_records(
        self,
        consumer: AIOKafkaConsumer,
        active_partitions: set[TP],
        timeout: float | None = None,  # noqa: ASYNC109  # upstream's signature
        max_records: int | None = None,
    ) -> RecordMap:
        topics = self.app.tables.changelog_topics
        changelogs = [tp for tp in active_partitions if tp.topic in topics]
        if changelogs and self.consumer.flow_active:
            fetcher: Any = consumer._fetcher  # noqa: SLF001
            if fetcher._records.keys().isdisjoint(active_partitions):  # noqa: SLF001
                await _wait_fetched(fetcher, timeout)
                timeout = 0
            for tp in changelogs:
                _keep_raw(fetcher._records.get(tp))  # noqa: SLF001
        return await super()._fetch_records(consumer, active_partitions, timeout, max_records)


async def _wait_fetched(fetcher: Any, timeout_s: float | None) -> None:
    """Wait until something was fetched, for whatever partition."""
    waiter = fetcher._create_fetch_waiter()  # noqa: SLF001
    with fetcher._subscriptions.fetch_context():  # noqa: SLF001
        await asyncio.wait([waiter], timeout=timeout_s)
    if waiter.done():
        waiter.result()  # it tells of errors
    else:
        waiter.cancel()


def _keep_raw(result: Any) -> None:
    """Have a changelog's records stay as they were read; upstream makes two objects of each."""
    records = getattr(result, "_partition_records", None)
    if records is not None:
        records._consumer_record = _same  # noqa: SLF001


def _same(_tp: TP, record: Any) -> Any:
    return record
