"""FastStream on aiokafka, taking batches of raw records; nothing durable."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from faststream import FastStream
from faststream.kafka import KafkaBroker, KafkaMessage

from benchmarks.peers.report import Meter, arguments
from benchmarks.peers.works import StreakFold


async def run() -> None:
    """Consume until all is done."""
    given = arguments()
    meter = Meter(given.events)
    folds = {number: StreakFold(number, given.partitions) for number in range(given.partitions)}
    broker = KafkaBroker(given.bootstrap, logger=None)
    app = FastStream(broker, logger=None)
    sending: list[asyncio.Future[Any]] = []

    @broker.subscriber(
        given.topic,
        group_id=given.name,
        auto_offset_reset="earliest",
        batch=True,
        max_records=500,
        decoder=_undecoded,
    )
    async def step(message: KafkaMessage) -> None:
        meter.start()
        done = 0
        records: Any = message.raw_message
        for record in records:
            taken = SimpleNamespace(value=record.value)
            done += folds[record.partition].apply(taken)
        for fold in folds.values():
            for key, value in fold.take_verdicts():
                sending.append(await broker.publish(value, given.out, key=key, no_confirm=True))
                meter.verdicts += 1
        if meter.add(done):
            await asyncio.gather(*sending)
            meter.stop()
            app.exit()

    await app.run()
    meter.report()


async def _undecoded(_message: KafkaMessage) -> None:
    """Records are decoded by the work itself."""


if __name__ == "__main__":
    asyncio.run(run())
