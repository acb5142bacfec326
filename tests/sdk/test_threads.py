"""The runner's threads on a bus that breaks."""

import logging
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest

from loopstream.events import Action, EventsLost, RunEnded, RunStarted, ToolCall
from loopstream.sdk import Block, Runner
from loopstream.sdk.frames import Frame
from loopstream.sdk.hush import Hush
from loopstream.sdk.ports import Done
from loopstream.sdk.threads import Reader, Sender, Worker
from loopstream.wire.routing import partition_of

from .fakes import (
    PARTITIONS,
    Bench,
    Bus,
    FakeIn,
    FakeOut,
    about,
    eventually,
    on,
    on_signature,
    verdict,
)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses and heartbeats that a test can wait for."""
    monkeypatch.setattr("loopstream.sdk.threads._FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr("loopstream.sdk.threads._LAST_PAUSE_S", 0.05)
    monkeypatch.setattr("loopstream.sdk.threads._HEARTBEAT_S", 0.05)
    monkeypatch.setattr("loopstream.sdk.threads._RECHECK_S", 0.05)


@pytest.fixture
def bus() -> Bus:
    return Bus()


@pytest.fixture
def runner(bus: Bus) -> Iterator[Any]:
    with on(bus, Runner)("bus:1", agent="a", linger_ms=1) as runner:
        yield runner


def test_events_arrive_where_they_belong_and_in_order(bus: Bus, runner: Any) -> None:
    runs = [runner.run(f"run-{n}") for n in range(8)]
    for _ in range(5):
        for run in runs:
            run.before_call("exec", {})
    assert runner.close()
    for frame in bus.frames:
        for stream in frame.tallies:
            assert frame.partition == partition_of(stream.scope, PARTITIONS)
    for run in runs:
        mine = [event for event in bus.events if event.run == run.id]
        assert [event.seq for event in mine] == list(range(1, 7))
        assert isinstance(mine[0], RunStarted)


def test_only_the_partitions_of_live_runs_are_read(bus: Bus, runner: Any) -> None:
    run = runner.run("run-1")
    eventually(lambda: bus.assigned[-1].keys() == {partition_of("run-1", PARTITIONS)})
    assert run.id == "run-1"


def test_a_verdict_from_before_the_run_is_not_read(bus: Bus, runner: Any) -> None:
    bus.publish(verdict(Action.ABORT, scope="run-1"))
    run = runner.run("run-1")
    eventually(lambda: bus.events)
    bus.publish(verdict(Action.BLOCK, scope="run-1", applies_to=on_signature("x")))
    eventually(lambda: runner.counters["verdicts_received"] == 1)
    assert run.before_call("exec").allowed


def test_an_answer_that_comes_at_once_is_not_missed(bus: Bus, runner: Any) -> None:
    """The reader is in place before a run's first event goes out."""

    def answer(frame: Any) -> None:
        for event in bus.events:
            if isinstance(event, ToolCall) and event.id not in answered:
                assert event.run is not None
                assert event.id is not None
                answered.add(event.id)
                bus.publish(verdict(Action.ANSWER, scope=event.run, evidence=about(event.id)))

    answered: set[str | None] = set()
    bus.answer = answer
    for n in range(20):
        with runner.run(f"run-{n}") as run:
            assert isinstance(run.before_call("exec", wait=30), Block)


def test_without_kafka_agents_go_on(bus: Bus) -> None:
    bus.up = False
    with on(bus, Runner)("bus:1", max_buffer_events=50, linger_ms=1) as runner:
        with runner.run() as run:
            for _ in range(100):
                decision = run.before_call("exec", {})
                assert decision.allowed
                run.after_call(decision, result="ok")
        assert not runner.healthy
        assert not runner.wait_ready(0.01)
        assert runner.counters["events_pending"] <= 51
        bus.up = True
        assert runner.wait_ready(30)
        eventually(lambda: runner.counters["events_pending"] == 0)
        lost = runner.counters["events_dropped"]
    marker, *rest = bus.events
    assert isinstance(marker, EventsLost)
    assert marker.count == lost
    assert len(rest) + lost == 202
    assert isinstance(rest[-1], RunEnded)


def test_an_outage_loses_nothing_that_fits(bus: Bus, runner: Any) -> None:
    with runner.run("run-1") as run:
        for n in range(300):
            bus.up = n % 60 < 40
            bus.lossy += n % 50 == 0
            run.before_call("exec", {"n": n})
        bus.up = True
        eventually(lambda: runner.counters["events_pending"] == 0)
        signature = run.before_call("exec", {}).call.signature
        bus.publish(verdict(Action.BLOCK, scope="run-1", applies_to=on_signature(signature)))
        eventually(lambda: not run.before_call("exec", {}).allowed)
    assert runner.close()
    # A frame whose confirmation was lost comes twice, nothing else does; order holds.
    numbers = [event.seq for event in bus.events if event.seq is not None]
    assert sorted(set(numbers)) == list(range(1, max(numbers) + 1))
    top = 0
    for number in numbers:
        assert number <= top + 1
        top = max(top, number)


def test_verdicts_of_an_outage_are_read_afterwards(bus: Bus, runner: Any) -> None:
    run = runner.run("run-1")
    signature = run.before_call("exec", {}).call.signature
    eventually(lambda: bus.events)
    bus.publish(verdict(Action.BLOCK, scope="run-1", applies_to=on_signature("another")))
    eventually(lambda: runner.counters["verdicts_received"])
    bus.up = False
    eventually(lambda: not runner.healthy)
    bus.publish(verdict(Action.BLOCK, scope="run-1", applies_to=on_signature(signature)))
    bus.up = True
    eventually(lambda: not run.before_call("exec", {}).allowed)
    # From where it was, not from the beginning.
    assert runner.counters["verdicts_duplicate"] == 0


class Silent(FakeOut):
    """The first producer of a bus takes frames in and says nothing, not even when it is closed."""

    def __init__(self, bus: Bus, held: list[tuple[Frame, Done]]) -> None:
        super().__init__(bus)
        bus.connected["made"] += 1
        self.held = held if bus.connected["made"] == 1 else None

    def send(self, frame: Frame, done: Done) -> None:
        if self.held is None:
            super().send(frame, done)
        else:
            self.held.append((frame, done))


@pytest.fixture
def silenced(bus: Bus) -> Iterator[tuple[Bench, Sender, list[tuple[Frame, Done]]]]:
    """A sender whose first producer is silent, and what that one holds: a frame of each lane."""
    bench = Bench()
    bench.clock.now = time.monotonic()
    for n in range(8):
        bench.begin(f"run-{n}")
    bench.hub.outbox.open(range(PARTITIONS))
    held: list[tuple[Frame, Done]] = []
    sender = Sender(bench.hub, lambda: Silent(bus, held))
    sender.CLOSE_S = 0.3  # type: ignore[misc]
    lanes = len(bench.hub.outbox.wanted())
    sender.start()
    eventually(lambda: len(held) == lanes)
    yield bench, sender, held
    sender.stop()
    sender.join(30)


def test_a_frame_that_fails_ends_the_wait_for_all(
    bus: Bus, silenced: tuple[Bench, Sender, list[tuple[Frame, Done]]]
) -> None:
    bench, _, held = silenced
    _, done = held[0]
    done(TimeoutError())
    eventually(lambda: bench.hub.outbox.pending == 0)
    assert len(bus.frames) == len(held)
    # What the old producer says about it now is no news.
    sent = bench.hub.counters.view()["events_sent"]
    for _, done in held:
        done(None)
        done(TimeoutError())
    assert bench.hub.counters.view()["events_sent"] == sent == 8
    assert (bench.hub.outbox.pending, bus.connected["made"]) == (0, 2)


def test_a_producer_that_says_nothing_is_replaced(
    bus: Bus, silenced: tuple[Bench, Sender, list[tuple[Frame, Done]]]
) -> None:
    bench, _, held = silenced
    bench.clock.now += 46
    bench.hub.outbox.wake()
    eventually(lambda: bench.hub.outbox.pending == 0)
    assert len(bus.frames) == len(held)


def test_what_is_confirmed_while_a_producer_closes_is_not_sent_again(
    bus: Bus, silenced: tuple[Bench, Sender, list[tuple[Frame, Done]]]
) -> None:
    bench, _, held = silenced
    (_, failed), *others = held
    failed(TimeoutError())
    for _, done in others:
        done(None)
    eventually(lambda: bench.hub.outbox.pending == 0)
    assert bus.frames == [held[0][0]]


def test_a_lane_made_while_the_reader_looks_elsewhere_stays_shut(bus: Bus) -> None:
    bench = Bench()
    names = {partition_of(f"run-{n}", PARTITIONS): f"run-{n}" for n in range(50)}
    bench.begin(names[0])

    class Meanwhile(FakeIn):
        def ends(self, partitions: Iterable[int]) -> Mapping[int, int]:
            bench.begin(names[1])
            return super().ends(partitions)

    reader = Reader(bench.hub, lambda: Meanwhile(bus))
    reader._follow(Meanwhile(bus))
    assert bench.hub.outbox.unopened() == {1}
    assert [frame.partition for frame in bench.hub.outbox.take()] == [0]


def test_a_frame_that_kafka_refuses_is_not_tried_for_ever(bus: Bus, runner: Any) -> None:
    run = runner.run("run-1")
    eventually(lambda: runner.counters["events_pending"] == 0)
    bus.max_frame = 250
    run.before_call("exec", {}, call_id="c" * 128)
    eventually(lambda: runner.counters["events_dropped"] == 1)
    bus.max_frame = 10_000
    run.before_call("exec", {})
    eventually(lambda: isinstance(bus.events[-1], ToolCall))
    assert any(isinstance(event, EventsLost) for event in bus.events)


def test_closing_says_whether_all_was_sent(bus: Bus) -> None:
    runner = on(bus, Runner)("bus:1", linger_ms=5_000)
    runner.run()
    assert runner.close()
    assert runner.close()
    assert len(bus.events) == 1
    assert bus.connected == {"out": 0, "in": 0}


def test_closing_without_kafka_ends(bus: Bus) -> None:
    bus.up = False
    runner = on(bus, Runner)("bus:1")
    runner.run()
    assert not runner.close(0.01)
    assert runner.counters["events_dropped"] == 1
    names = {thread.name for thread in runner._machine._threads if thread.is_alive()}
    assert not names


def test_a_reader_that_hears_nothing_connects_anew(bus: Bus) -> None:
    """A consumer says nothing when its broker is gone: heartbeats find out."""
    bench = Bench()
    bench.begin()
    connections = []

    class Deaf(FakeIn):
        def __init__(self, bus: Bus) -> None:
            super().__init__(bus)
            connections.append(self)
            self.asked = 0

        def ends(self, partitions: Any) -> Any:
            self.asked += 1
            if len(connections) == 1 and self.asked > 1:
                raise ConnectionError("deaf")
            return super().ends(partitions)

    reader = Reader(bench.hub, lambda: Deaf(bus))
    reader.start()
    eventually(lambda: len(connections) == 2 and bench.hub.link.reading)
    assert connections[1].positions == connections[0].positions
    reader.stop()
    reader.join(30)
    assert not bench.hub.link.reading


def test_a_consumer_that_reads_nothing_is_replaced_once(bus: Bus) -> None:
    """It answers heartbeats, and there is more in its partition, but none of it comes."""
    bench = Bench()
    bench.begin("run-1")
    heartbeats: list[int] = []
    connections: list[FakeIn] = []

    class Deaf(FakeIn):
        def ends(self, partitions: Iterable[int]) -> Mapping[int, int]:
            heartbeats.append(len(connections))
            return dict.fromkeys(partitions, 1)

    def connect() -> FakeIn:
        connections.append(Deaf(bus))
        return connections[-1]

    reader = Reader(bench.hub, connect)
    reader._positions = {partition_of("run-1", PARTITIONS): 0}
    reader.start()
    # The second one finds nothing either: whatever stands there is no record.
    eventually(lambda: heartbeats.count(2) >= 5)
    assert heartbeats.count(1) == 2
    assert len(connections) == 2
    assert bench.hub.link.reading
    reader.stop()
    reader.join(30)


def test_a_thread_outlives_any_trouble(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    often = threading.Semaphore(0)

    class Troubled(Worker):
        def session(self) -> None:
            often.release()
            raise RuntimeError("trouble")

        def down(self) -> None:
            pass

    thread = Troubled(bench.hub, "test")
    with caplog.at_level(logging.WARNING, "loopstream.sdk"):
        thread.start()
        for _ in range(3):
            assert often.acquire(timeout=30)
        thread.stop()
        thread.join(30)
    # Three times the same trouble within a minute is one line.
    assert sum("trouble" in record.getMessage() for record in caplog.records) == 1


def test_complaints_come_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    with caplog.at_level(logging.WARNING, "loopstream.sdk"):
        for _ in range(3):
            bench.hub.complaints.say("a", "first")
        bench.hub.complaints.say("b", "other")
        bench.clock.now += 61
        bench.hub.complaints.say("a", "again")
    assert [record.getMessage() for record in caplog.records if "No key" not in record.msg] == [
        "first",
        "other",
        "again",
        "2 more like this in the minute before",
    ]


def test_kafka_pythons_own_lines_are_thinned_out_for_our_threads_alone() -> None:
    hush = Hush()
    record = logging.LogRecord("kafka.cluster", logging.ERROR, "", 0, "refused", None, None)
    record.threadName = "somebody else's"
    assert all(hush.filter(record) for _ in range(3))
    record.threadName = "loopstream-reader"
    assert [hush.filter(record) for _ in range(3)] == [True, False, False]
    record.levelno = logging.INFO
    assert hush.filter(record)
    record.levelno, record.name = logging.WARNING, "kafka.coordinator.consumer"
    assert not hush.filter(record)
