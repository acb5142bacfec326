"""Faust as it is usually used: a table write, and so a changelog record, for each event."""

from __future__ import annotations

import asyncio
import os
import tempfile
from typing import Any

import faust
import msgpack

from benchmarks.peers.report import Meter, arguments
from benchmarks.work import streak_decode, streak_new, streak_step


def main() -> None:
    """Run the application until all events are done and flushed."""
    given = arguments()
    meter = Meter(given.events)
    app = faust.App(
        given.name,
        broker=f"kafka://{given.bootstrap}",
        store="memory://",
        topic_partitions=given.partitions,
        consumer_auto_offset_reset="earliest",
        datadir=tempfile.mkdtemp(prefix="faust-"),
        web_enabled=False,
    )
    raw: dict[str, Any] = {
        "key_type": bytes,
        "value_type": bytes,
        "key_serializer": "raw",
        "value_serializer": "raw",
    }
    source = app.topic(given.topic, partitions=given.partitions, **raw)
    sink = app.topic(given.out, partitions=given.partitions, **raw)
    table: Any = app.Table("streaks", key_type=bytes, value_type=bytes, partitions=given.partitions)

    @app.agent(source)
    async def step(stream: Any) -> None:
        async for key, value in stream.items():
            meter.start()
            row = table.get(key)
            run = msgpack.unpackb(row) if row else streak_new()
            for _, call in streak_decode(value):
                if streak := streak_step(run, call):
                    await sink.send(key=key, value=b"%d" % streak)
                    meter.verdicts += 1
            table[key] = msgpack.packb(run)
            if meter.add(1):
                asyncio.ensure_future(_end(app, meter))  # noqa: RUF006 - it ends the process

    faust.Worker(
        app, loglevel="ERROR", quiet=True, redirect_stdouts=False
    ).execute_from_commandline()


async def _end(app: Any, meter: Meter) -> None:
    await app.producer.flush()
    await app.consumer.commit()
    meter.stop()
    meter.report()
    os._exit(0)


if __name__ == "__main__":
    main()
