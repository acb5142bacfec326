"""The runner on a real broker. The worker's part, its verdicts, is played by the tests."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

from loopstream.broker import EmbeddedKafka
from loopstream.events import (
    Action,
    EventsLost,
    Level,
    RunEnded,
    RunEvent,
    RunStarted,
    ToolCall,
    Verdict,
)
from loopstream.sdk import Allow, AsyncRunner, Block, Connection, RunAborted, Runner, Warn, link
from loopstream.wire.codec import CONTENT_TYPE, JSON_TYPE, decode_record
from loopstream.wire.routing import partition_of
from loopstream.wire.verdicts import encode_model

from .fakes import about, eventually, on_signature, verdict

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]

PARTITIONS = 6


class Topics:
    """The two topics of a deployment, seen from the worker's side."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self.bootstrap = bootstrap
        self.prefix = prefix
        self.events_topic, self.verdicts_topic = f"{prefix}.events", f"{prefix}.verdicts"

    def create(self) -> None:
        admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        try:
            admin.create_topics(
                [
                    NewTopic(name, num_partitions=PARTITIONS, replication_factor=1)
                    for name in (self.events_topic, self.verdicts_topic)
                ]
            )
        finally:
            admin.close()

    def publish(self, *verdicts: Verdict, form: str = "msgpack") -> None:
        producer = KafkaProducer(bootstrap_servers=self.bootstrap)
        try:
            for said in verdicts:
                producer.send(
                    self.verdicts_topic,
                    key=said.scope.encode(),
                    value=encode_model(said, "json" if form == "json" else "msgpack"),
                    partition=partition_of(said.scope, PARTITIONS),
                    headers=[(CONTENT_TYPE, JSON_TYPE)] if form == "json" else [],
                ).get(30)
        finally:
            producer.close()

    def consumer(self) -> KafkaConsumer:
        consumer = KafkaConsumer(bootstrap_servers=self.bootstrap, auto_offset_reset="earliest")
        consumer.assign([TopicPartition(self.events_topic, n) for n in range(PARTITIONS)])
        return consumer

    def records(self) -> list[Any]:
        """All records of the events topic."""
        consumer = self.consumer()
        try:
            ends = consumer.end_offsets(consumer.assignment())
            records: list[Any] = []
            while any((consumer.position(place) or 0) < end for place, end in ends.items()):
                for batch in consumer.poll(timeout_ms=500).values():
                    records += batch
            return records
        finally:
            consumer.close()

    def events(self, run: str) -> list[RunEvent]:
        """The events of a run, in the order of the topic."""
        return [event for record in self.records() for event in opened(record.value, run)]


def opened(value: bytes, run: str) -> list[RunEvent]:
    decoded = decode_record(value)
    assert not decoded.rejects
    return [event for event in decoded.events if getattr(event, "run", None) == run]  # type: ignore[misc]


@pytest.fixture
def topics(bootstrap: str, prefix: str) -> Topics:
    topics = Topics(bootstrap, prefix)
    topics.create()
    return topics


@pytest.fixture
def runner(topics: Topics) -> Iterator[Runner]:
    with Runner(topics.bootstrap, prefix=topics.prefix, agent="a", linger_ms=2) as runner:
        assert runner.wait_ready(60)
        yield runner


def confirmed(runner: Runner) -> None:
    eventually(lambda: runner.counters["events_pending"] == 0, 60)


def heard(runner: Runner, count: int = 1) -> None:
    eventually(lambda: runner.counters["verdicts_received"] >= count, 60)


def test_frames_arrive_on_the_partition_of_their_runs(topics: Topics, runner: Runner) -> None:
    runs = [runner.run(f"run-{n}-é") for n in range(20)]
    for run in runs:
        decision = run.before_call("exec", {"command": "ls"})
        run.after_call(decision, result="files")
        run.end()
    confirmed(runner)
    records = topics.records()
    seen: dict[str, list[str]] = {}
    for record in records:
        for event in decode_record(record.value).events:
            assert not isinstance(event, Verdict)
            run_id = getattr(event, "run", None)
            assert isinstance(run_id, str)
            assert record.partition == partition_of(run_id, PARTITIONS)
            assert record.key in {None, run_id.encode()}
            seen.setdefault(run_id, []).append(event.type)
    assert seen.keys() == {run.id for run in runs}
    expected = ["run_started", "tool_call", "tool_outcome", "run_ended"]
    assert all(types == expected for types in seen.values())


@pytest.mark.parametrize("form", ["msgpack", "json"])
def test_verdicts_are_obeyed(topics: Topics, runner: Runner, form: str) -> None:
    run = runner.run("run-1")
    call = run.before_call("exec", {"command": "ls"}).call
    confirmed(runner)
    block = verdict(Action.BLOCK, applies_to=on_signature(call.signature))
    topics.publish(verdict(Action.WARN, evidence=about(call.event)), block, form=form)
    heard(runner, 2)
    decision = run.before_call("exec", {"command": "ls"})
    assert isinstance(decision, Block)
    assert decision.verdict == block.id
    topics.publish(verdict(Action.RELEASE, applies_to=on_signature(call.signature)), form=form)
    heard(runner, 3)
    assert isinstance(run.before_call("exec", {"command": "ls"}), Warn)
    topics.publish(verdict(Action.ABORT), form=form)
    heard(runner, 4)
    with pytest.raises(RunAborted):
        run.before_call("read")


def test_verdicts_from_before_the_run_are_not_read(topics: Topics, runner: Runner) -> None:
    topics.publish(verdict(Action.ABORT))
    run = runner.run("run-1")
    confirmed(runner)
    topics.publish(verdict(Action.BLOCK, applies_to=on_signature("x")))
    heard(runner)
    assert run.before_call("exec").allowed
    assert runner.counters["verdicts_received"] == 1


def answering(topics: Topics, stop: threading.Event) -> None:
    """A worker that answers each gated call; calls of ``rm`` it forbids."""
    consumer = topics.consumer()
    producer = KafkaProducer(bootstrap_servers=topics.bootstrap)
    try:
        while not stop.is_set():
            for batch in consumer.poll(timeout_ms=100).values():
                for record in batch:
                    for event in decode_record(record.value).events:
                        if isinstance(event, ToolCall) and event.disposition == "gated":
                            answer(topics, producer, event)
    finally:
        producer.close()
        consumer.close()


def answer(topics: Topics, producer: KafkaProducer, event: ToolCall) -> None:
    assert event.run is not None
    assert event.id is not None
    said = verdict(
        Action.ANSWER,
        scope=event.run,
        level=Level.CRITICAL if event.tool == "rm" else Level.NONE,
        evidence=about(event.id),
        call_id=event.call_id,
    )
    producer.send(
        topics.verdicts_topic,
        key=event.run.encode(),
        value=encode_model(said),
        partition=partition_of(event.run, PARTITIONS),
    )


@pytest.fixture
def worker(topics: Topics) -> Iterator[None]:
    stop = threading.Event()
    thread = threading.Thread(target=answering, args=(topics, stop), daemon=True)
    thread.start()
    yield
    stop.set()
    thread.join(60)


def test_a_strict_gate_gets_its_answer(topics: Topics, worker: None, runner: Runner) -> None:
    for n in range(3):
        with runner.run(f"run-{n}") as run:
            assert isinstance(run.before_call("ls", wait=60), Allow)
            assert isinstance(run.before_call("rm", wait=60), Block)
    assert runner.counters["gate_timeouts"] == 0


async def test_strict_gates_under_asyncio(topics: Topics, worker: None) -> None:
    async with AsyncRunner(topics.bootstrap, prefix=topics.prefix, linger_ms=2) as runner:
        assert await runner.wait_ready(60)

        async def agent(name: str) -> list[bool]:
            async with runner.run(name) as run:
                return [
                    (await run.before_call(tool, wait=60)).allowed for tool in ("ls", "rm", "ls")
                ]

        results = await asyncio.gather(*(agent(f"run-{n}") for n in range(10)))
    assert results == [[True, False, True]] * 10


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[EmbeddedKafka]:
    """A broker of the test's own, to be killed."""
    with EmbeddedKafka(tmp_path / "kafka") as broker:
        yield broker


@pytest.mark.slow
def test_no_topic_is_made_by_asking_for_it(prefix: str) -> None:
    with EmbeddedKafka(properties={"auto.create.topics.enable": "true"}) as broker:
        with Runner(broker.bootstrap, prefix=prefix) as runner:
            with runner.run() as run:
                assert run.before_call("exec").allowed
            # Not before both threads have asked, the sender several times.
            assert not runner.wait_ready(3)
            runner.close(0.1)
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        try:
            assert not [topic for topic in admin.list_topics() if topic.startswith(prefix)]
        finally:
            admin.close()


@pytest.mark.slow
def test_a_broker_that_is_absent_at_first(mortal: EmbeddedKafka, prefix: str) -> None:
    topics = Topics(mortal.bootstrap, prefix)
    topics.create()
    mortal.kill()
    with Runner(mortal.bootstrap, prefix=prefix, max_buffer_events=100) as runner:
        with runner.run("run-1") as run:
            for _ in range(150):
                assert run.before_call("exec", {}).allowed
        assert not runner.healthy
        mortal.start()
        assert runner.wait_ready(60)
        confirmed(runner)
        lost = runner.counters["events_dropped"]
    marker, *rest = topics.events("run-1")
    assert isinstance(marker, EventsLost)
    assert marker.count == lost
    assert len(rest) + lost == 152
    assert isinstance(rest[-1], RunEnded)


@pytest.mark.slow
@pytest.mark.parametrize("outlasted", [False, True])
def test_a_broker_that_is_killed_while_agents_run(
    mortal: EmbeddedKafka, prefix: str, outlasted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is lost, whether or not the outage outlasts Kafka's patience with a frame."""
    if outlasted:
        monkeypatch.setattr("loopstream.sdk.link._DELIVERY_MS", 2_000)
        monkeypatch.setitem(link._COMMON, "request_timeout_ms", 1_500)
    topics = Topics(mortal.bootstrap, prefix)
    topics.create()
    with Runner(mortal.bootstrap, prefix=prefix, linger_ms=1) as runner:
        assert runner.wait_ready(60)
        stop = threading.Event()
        refused: list[Block] = []
        agents = [
            threading.Thread(target=agent, args=(runner, f"run-{n}", stop, refused))
            for n in range(4)
        ]
        for thread in agents:
            thread.start()
        eventually(lambda: runner.counters["events_sent"] > 100)
        # Each run's first event is out: the reader is in place for all of them.
        eventually(lambda: not runner._hub.outbox.unopened(), 60)
        mortal.kill()
        eventually(lambda: not runner.healthy, 60)
        if outlasted:
            eventually(lambda: runner.counters["frames_retried"], 60)
        sent = runner.counters["events_sent"]
        mortal.start()
        eventually(lambda: runner.counters["events_sent"] > sent + 100, 120)
        # The reader found its way back too.
        topics.publish(*(block_all(f"run-{n}") for n in range(4)))
        eventually(lambda: len(refused) >= 4, 60)
        eventually(lambda: runner.healthy, 60)
        stop.set()
        for thread in agents:
            thread.join(60)
        confirmed(runner)
        assert runner.counters["events_dropped"] == 0
    for n in range(4):
        events = topics.events(f"run-{n}")
        assert isinstance(events[0], RunStarted)
        numbers = unrepeated([event.seq for event in events])
        assert numbers == list(range(1, len(numbers) + 1))


def agent(runner: Runner, name: str, stop: threading.Event, refused: list[Block]) -> None:
    with runner.run(name) as run:
        while not stop.wait(0.005):
            decision = run.before_call("exec", {"command": "ls"})
            if isinstance(decision, Block):
                refused.append(decision)
                return


def block_all(run: str) -> Verdict:
    return verdict(Action.BLOCK, scope=run, applies_to=({"tool": "exec"},))


def unrepeated(numbers: list[int | None]) -> list[int]:
    """What a worker applies: numbers at or below the last one are duplicates."""
    applied: list[int] = []
    for number in numbers:
        assert number is not None
        if not applied or number > applied[-1]:
            applied.append(number)
    return applied


def test_a_connection_can_be_given_whole(topics: Topics) -> None:
    connection = Connection.model_validate({"bootstrap": topics.bootstrap, "client_id": "mine"})
    with Runner(connection, prefix=topics.prefix) as runner, runner.run("run-1"):
        assert runner.wait_ready(60)
    assert [event.type for event in topics.events("run-1")] == ["run_started", "run_ended"]


def test_closing_leaves_no_thread_behind(topics: Topics) -> None:
    def ours() -> Callable[[], set[str]]:
        return lambda: {
            thread.name
            for thread in threading.enumerate()
            if "loopstream" in thread.name and thread not in before
        }

    before = set(threading.enumerate())
    with Runner(topics.bootstrap, prefix=topics.prefix) as runner, runner.run():
        assert runner.wait_ready(60)
        assert ours()()
    eventually(lambda: not ours()(), 60)
