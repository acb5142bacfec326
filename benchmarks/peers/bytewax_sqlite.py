"""Bytewax with its recovery in local SQLite files; the state of a run as it is in memory."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Any

from bytewax import operators as op
from bytewax.connectors.kafka import KafkaSink, KafkaSinkMessage, KafkaSource
from bytewax.dataflow import Dataflow
from bytewax.recovery import RecoveryConfig, init_db_dir
from bytewax.run import cli_main

from benchmarks.peers.report import Meter, arguments
from benchmarks.work import streak_decode, streak_new, streak_step


def main() -> None:
    """Run the dataflow to the end of the topic, its last snapshot included."""
    given = arguments()
    meter = Meter(given.events)

    def step(state: list[Any] | None, value: bytes) -> tuple[list[Any], list[bytes]]:
        run = streak_new() if state is None else state
        out = []
        for _, call in streak_decode(value):
            if streak := streak_step(run, call):
                out.append(b"%d" % streak)
        meter.verdicts += len(out)
        meter.add(1)
        return run, out

    def keyed(message: Any) -> tuple[str, bytes]:
        meter.start()
        return message.key.decode(), message.value

    flow = Dataflow("streaks")
    events = op.input("events", flow, KafkaSource([given.bootstrap], [given.topic], tail=False))
    runs = op.map("keyed", events, keyed)
    verdicts = op.stateful_flat_map("step", runs, step)
    sunk = op.map("sunk", verdicts, lambda pair: KafkaSinkMessage(pair[0].encode(), pair[1]))
    op.output("verdicts", sunk, KafkaSink([given.bootstrap], given.out))
    with tempfile.TemporaryDirectory(prefix="bytewax-") as folder:
        init_db_dir(Path(folder), 1)
        with contextlib.suppress(SystemExit):
            cli_main(flow, recovery_config=RecoveryConfig(folder))
        meter.stop()
    meter.report()


if __name__ == "__main__":
    main()
