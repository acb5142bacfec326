"""The consumer's thread: how long the broker may hold a fetch back while it has nothing to send.

Answers:

* Upstream lets the broker hold a fetch back for 1.5 s. A broker answers the requests of one
  connection one after the other, so whatever is asked of it meanwhile (ends and beginnings of
  partitions, after each assignment) waits that long. Here it is a tenth of a second.
* aiokafka has one fetch on its way to a node, for all assigned partitions that it holds no records
  of. While those of the changelogs wait to be taken, that is one for the events alone, which have
  nothing to send in a recovery; the changelogs stood still behind it. Here it is soon back.
"""

from __future__ import annotations

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
        fetcher._fetch_max_wait_ms = RECOVERING_WAIT_MS if self.app.in_recovery else WAIT_MS  # noqa: SLF001
        return await super().getmany(active_partitions, timeout)
