"""Quix Streams with its durable state; the row of a run as bytes, as ours is."""

from __future__ import annotations

import tempfile
from typing import Any

import msgpack
from quixstreams import Application

from benchmarks.peers.report import Meter, arguments
from benchmarks.peers.works import ENABLED
from benchmarks.work import streak_decode, streak_new, streak_step
from loopstream.engine import Engine
from loopstream.partition.settings import SettingsInForce
from loopstream.policy.deployment import Deployment
from loopstream.policy.verdicts import Position
from loopstream.state.pack import pack, unpack
from loopstream.state.run import RunState
from loopstream.wire.codec import decode_record
from loopstream.wire.verdicts import encode_model

ROW = "row"


class Streak:
    """Unpack, fold, pack: what a stateful function of Quix does for each event."""

    def __call__(self, value: bytes, state: Any) -> list[bytes]:
        """Verdicts of one record."""
        row = state.get_bytes(ROW)
        run = msgpack.unpackb(row) if row else streak_new()
        out = []
        for _, call in streak_decode(value):
            if streak := streak_step(run, call):
                out.append(b"%d" % streak)
        state.set_bytes(ROW, msgpack.packb(run))
        return out


class WholeEngine:
    """Our engine as the stateful function. Live states are kept, so only packing is paid for."""

    def __init__(self) -> None:
        self._engine = Engine(Deployment("bench"))
        self._limits = SettingsInForce("documented", {"*": ENABLED}).limits("bench")
        self._live: dict[str, RunState] = {}

    def __call__(self, value: bytes, state: Any) -> list[bytes]:
        """Verdicts of one record."""
        out = []
        events: Any = decode_record(value).events
        for place, event in enumerate(events):
            scope = event.run
            run = self._live.get(scope)
            if run is None:
                row = state.get_bytes(ROW)
                run = self._live[scope] = unpack(scope, row) if row else RunState(scope, 0)
            at = Position(0, 0, place, event.time)
            step = self._engine.step(run, event, self._limits, at)
            out += [encode_model(verdict) for verdict in step.verdicts]
            state.set_bytes(ROW, pack(run))
        return out


def main() -> None:
    """Run the application until all events are done, then commit."""
    given = arguments()
    meter = Meter(given.events)
    app = Application(
        broker_address=given.bootstrap,
        consumer_group=given.name,
        auto_offset_reset="earliest",
        state_dir=tempfile.mkdtemp(prefix="quix-"),
        auto_create_topics=True,
        loglevel="ERROR",
    )
    source = app.topic(given.topic, value_deserializer="bytes", key_deserializer="bytes")
    sink = app.topic(given.out, value_serializer="bytes", key_serializer="bytes")
    work = Streak() if given.work == "streak" else WholeEngine()

    def step(value: bytes, state: Any) -> list[bytes]:
        meter.start()
        verdicts = work(value, state)
        meter.verdicts += len(verdicts)
        if meter.add(1):
            app.stop()
        return verdicts

    frame = app.dataframe(source)
    frame.apply(step, stateful=True, expand=True).to_topic(sink)
    app.run()  # commits its last checkpoint before it returns
    meter.stop()
    meter.report()


if __name__ == "__main__":
    main()
