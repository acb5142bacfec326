from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from loopstream.events import Action, Evidence, Level, Verdict
from loopstream.wire.codec import decode_record
from loopstream.wire.routing import partition_of
from loopstream.wire.verdicts import encode_model
from tests.cli.conftest import Cli
from tests.conftest import SHARED

pytestmark = pytest.mark.kafka


@pytest.fixture
def topics(on_kafka: Cli) -> None:
    assert on_kafka("topics", "create", "--partitions", 3).code == 0


@pytest.fixture
def producer(bootstrap: str) -> Iterator[KafkaProducer]:
    client = KafkaProducer(bootstrap_servers=bootstrap)
    yield client
    client.close()


def records(bootstrap: str, topic: str) -> list[Any]:
    client = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None)
    partitions = [TopicPartition(topic, n) for n in client.partitions_for_topic(topic)]
    client.assign(partitions)
    client.seek_to_beginning(*partitions)
    ends = client.end_offsets(partitions)
    found: list[Any] = []
    while any((client.position(part) or 0) < end for part, end in ends.items()):
        for polled in client.poll(timeout_ms=500).values():
            found += polled
    client.close()
    return found


def events_of(record: Any) -> list[Any]:
    decoded = decode_record(record.value, dict(record.headers)["content-type"])
    assert not decoded.rejects
    return list(decoded.events)


def verdict(run: str, seq: int, **more: Any) -> Verdict:
    fields: dict[str, Any] = {
        "id": f"{seq:032x}",
        "seq": seq,
        "scope": run,
        "run": run,
        "agent": "tester",
        "action": Action.BLOCK,
        "level": Level.CRITICAL,
        "detector": "generic_repeat",
        "count": 20,
        "threshold": 20,
        "tool": "exec",
        "key": "generic:exec",
        "reason": "the same call 20 times",
        "evidence": Evidence(event="e1", partition=0, offset=1),
        "profile": "documented",
        "settings": "0123456789abcdef",
        "event_time": 1,
        "append_time": 2,
    }
    return Verdict(**(fields | more))


def put(producer: KafkaProducer, prefix: str, made: Verdict, value: bytes | None = None) -> None:
    key = made.scope.encode()
    value = encode_model(made) if value is None else value
    partition = partition_of(made.scope, 3)
    future = producer.send(f"{prefix}.verdicts", key=key, value=value, partition=partition)
    future.get(timeout=30)


# -- topics -----------------------------------------------------------------------------------


def test_topics_are_created_once_and_keep_their_partitions(on_kafka: Cli) -> None:
    assert on_kafka("topics", "show").code == 4
    assert on_kafka("topics", "create", "--partitions", 3).code == 0
    again = on_kafka("topics", "create", "--partitions", 3)
    assert again.code == 0
    assert again.err.startswith("0 topics created")
    unsaid = on_kafka("topics", "create")
    assert unsaid.code == 0, unsaid.err
    assert "3 partitions" in unsaid.err
    assert on_kafka("topics", "create", "--partitions", 4).code == 4
    other = on_kafka("topics", "create", "--partitions", 4)
    assert other.code == 4
    assert "has 3 partitions, not 4" in other.err
    shown = on_kafka("topics", "show", "-o", "ndjson")
    assert shown.code == 0
    partitions = {row["topic"].split(".", 1)[1]: row["partitions"] for row in shown.rows}
    assert partitions["events"] == partitions["verdicts"] == partitions["runs"] == 3
    assert partitions["config"] == partitions["commands"] == 1


# -- what does not work, and says so ----------------------------------------------------------

ASKING = [
    ("topics", "create"),
    ("topics", "show"),
    ("verdicts",),
    ("runs", "list"),
    ("runs", "show", "r"),
    ("publish", "--sample", "loop"),
    ("config", "push", "block.json"),
    ("worker",),
]


@pytest.mark.parametrize("answers", [False, True], ids=["nobody there", "no answer"])
@pytest.mark.parametrize("arguments", ASKING, ids=" ".join)
def test_an_unreachable_broker_is_one_message(
    cli: Cli, arguments: tuple[str, ...], answers: bool
) -> None:
    Path("block.json").write_text('{"enabled": true}')
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        if answers:
            server.listen()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        said = cli(*arguments, "--bootstrap", address, "--set", "timeout_s=1")
    assert said.code == 4
    assert said.out.strip() == ""
    assert said.err.startswith(f"loopstream: {address}: ")
    assert "Traceback" not in said.err


def test_a_certificate_file_that_is_not_there_is_named(on_kafka: Cli) -> None:
    sets = ("--set", "security.protocol=SSL", "--set", "security.cafile=absent.pem")
    said = on_kafka("verdicts", *sets)
    assert said.code == 3
    assert "security: can't connect: [Errno 2]" in said.err


def test_another_protocol_than_the_listener_s_points_at_the_security_settings(
    on_kafka: Cli,
) -> None:
    said = on_kafka("verdicts", "--set", "security.protocol=SSL", "--set", "timeout_s=1")
    assert said.code == 4
    assert "do the security settings fit its listener?" in said.err


@pytest.mark.parametrize("arguments", [a for a in ASKING if a[0] != "topics"], ids=" ".join)
def test_a_missing_topic_says_how_to_create_it(on_kafka: Cli, arguments: tuple[str, ...]) -> None:
    Path("block.json").write_text('{"enabled": true}')
    said = on_kafka(*arguments)
    assert said.code == 4
    assert "loopstream topics create" in said.err
    assert said.out == ""


# -- publish ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("topics")
def test_recorded_runs_arrive_in_order_on_their_partitions(
    on_kafka: Cli, bootstrap: str, prefix: str
) -> None:
    file = SHARED / "real" / "runs.jsonl.gz"
    said = on_kafka("publish", file, "--run-prefix", "p-")
    assert said.code == 0
    assert said.err == f"published 127 runs, 2132 events to {prefix}.events\n"
    seen: dict[str, list[int]] = {}
    for record in records(bootstrap, f"{prefix}.events"):
        for event in events_of(record):
            assert record.key.decode() == event.run
            assert record.partition == partition_of(event.run, 3)
            seen.setdefault(event.run, []).append(event.seq)
    assert len(seen) == 127
    assert all(name.startswith("p-") for name in seen)
    assert all(numbers == list(range(len(numbers))) for numbers in seen.values())


@pytest.mark.usefixtures("topics")
def test_samples_may_be_published_raw(on_kafka: Cli, bootstrap: str, prefix: str) -> None:
    said = on_kafka("publish", "--sample", "loop", "--sample", "healthy", "--raw")
    assert said.code == 0
    events = [
        event for record in records(bootstrap, f"{prefix}.events") for event in events_of(record)
    ]
    calls = [event for event in events if event.type == "tool_call"]
    assert calls
    assert all(call.fp is None and call.args is not None for call in calls)
    assert sum(event.type == "run_ended" for event in events) == 6


@pytest.mark.usefixtures("topics")
def test_a_malformed_recording_is_exit_code_5(on_kafka: Cli) -> None:
    Path("bad.jsonl").write_text('{"run": "r", "events": []}\n{"run": 1}\n')
    said = on_kafka("publish", "bad.jsonl")
    assert said.code == 5
    assert "bad.jsonl:2" in said.err
    assert on_kafka("publish", "absent.jsonl").code == 5


# -- config push ------------------------------------------------------------------------------

FILE = """{tools: {loopDetection: {enabled: true, warningThreshold: 8}},
 agents: {list: [{id: "a", tools: {loopDetection: {historySize: 50}}}]}}"""


@pytest.mark.usefixtures("topics")
def test_more_settings_than_workers_take_are_not_pushed(on_kafka: Cli, tmp_path: Path) -> None:
    tools = {"loopDetection": {"enabled": True, "note": "x" * 1000}}
    agents = [{"id": f"agent-{number}", "tools": tools} for number in range(900)]
    (tmp_path / "many.json").write_text(json.dumps({"agents": {"list": agents}}))
    said = on_kafka("config", "push", "many.json", "--dry-run", "--force")
    assert said.code == 3
    assert "what most agents share" in said.err


@pytest.mark.usefixtures("topics")
def test_only_changed_blocks_are_pushed(on_kafka: Cli, bootstrap: str, prefix: str) -> None:
    Path("agents.json").write_text(FILE)
    dry = on_kafka("config", "push", "agents.json", "--dry-run", "-o", "ndjson")
    assert [(row["what"], row["key"], row["offset"]) for row in dry.rows] == [
        ("add", "*", None),
        ("add", "a", None),
    ]
    assert records(bootstrap, f"{prefix}.config") == []

    first = on_kafka("config", "push", "agents.json", "-o", "ndjson")
    assert [row["offset"] for row in first.rows] == [0, 1]
    assert on_kafka("config", "push", "agents.json", "-o", "ndjson").rows == []

    Path("agents.json").write_text(FILE.replace("8", "9"))
    third = on_kafka("config", "push", "agents.json")
    assert third.out == (
        'change *: {"enabled": true, "warningThreshold": 8} to '
        '{"enabled": true, "warningThreshold": 9}\n'
    )
    keys = [(r.key, r.value) for r in records(bootstrap, f"{prefix}.config")]
    assert keys == [
        (b"*", b'{"enabled":true,"warningThreshold":8}'),
        (b"a", b'{"historySize":50}'),
        (b"*", b'{"enabled":true,"warningThreshold":9}'),
    ]


@pytest.mark.usefixtures("topics")
def test_an_agent_that_is_gone_is_taken_away_on_request(
    on_kafka: Cli, bootstrap: str, prefix: str
) -> None:
    Path("agents.json").write_text(FILE)
    assert on_kafka("config", "push", "agents.json").code == 0
    Path("less.json").write_text('{"enabled": true, "warningThreshold": 8}')
    assert on_kafka("config", "push", "less.json").out == ""
    pruned = on_kafka("config", "push", "less.json", "--prune", "-o", "ndjson")
    assert [(row["what"], row["key"]) for row in pruned.rows] == [("remove", "a")]
    last = records(bootstrap, f"{prefix}.config")[-1]
    assert (last.key, last.value) == (b"a", None)
    assert on_kafka("config", "push", "less.json", "--prune", "-o", "ndjson").rows == []


def test_a_file_beyond_the_bounds_is_not_pushed(on_kafka: Cli) -> None:
    Path("agents.json").write_text('{"postCompactionGuard": {"windowSize": 1001}}')
    said = on_kafka("config", "push", "agents.json")
    assert said.code == 3
    assert "windowSize is above 1000" in said.err


# -- verdicts ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("topics")
def test_verdicts_are_printed_and_filtered_by_run(
    on_kafka: Cli, producer: KafkaProducer, prefix: str
) -> None:
    assert on_kafka("verdicts", "-o", "json").json == []
    put(producer, prefix, verdict("r1", 1))
    put(producer, prefix, verdict("r2", 2, action=Action.WARN, level=Level.WARNING))
    put(producer, prefix, verdict("r1", 3, mode="shadow"))
    everything = on_kafka("verdicts", "-o", "ndjson").rows
    assert sorted(row["seq"] for row in everything) == [1, 2, 3]
    one = on_kafka("verdicts", "--run", " r1 ", "-o", "json").json
    assert [row["seq"] for row in one] == [1, 3]
    table = on_kafka("verdicts", "--run", "r1").out.splitlines()
    assert len(table) == 3
    assert "generic_repeat" in table[1]
    assert "the same call 20 times" in table[1]
    assert "block (shadow)" in table[2]


@pytest.mark.usefixtures("topics")
def test_fail_on_turns_a_verdict_into_an_exit_code(
    on_kafka: Cli, producer: KafkaProducer, prefix: str
) -> None:
    assert on_kafka("verdicts", "--fail-on", "warning").code == 0
    put(producer, prefix, verdict("r1", 1, action=Action.WARN, level=Level.WARNING))
    assert on_kafka("verdicts", "--fail-on", "warning").code == 1
    assert on_kafka("verdicts", "--fail-on", "critical").code == 0


@pytest.mark.usefixtures("topics")
def test_what_is_no_verdict_is_left_out_and_told(
    on_kafka: Cli, producer: KafkaProducer, prefix: str
) -> None:
    put(producer, prefix, verdict("r1", 1))
    put(producer, prefix, verdict("r1", 2), value=b"\x1b[2J")
    put(producer, prefix, verdict("r1", 3))
    said = on_kafka("verdicts", "-o", "ndjson")
    assert said.code == 5
    assert [row["seq"] for row in said.rows] == [1, 3]
    assert f"{prefix}.verdicts-{partition_of('r1', 3)}@1" in said.err


@pytest.mark.usefixtures("topics")
def test_following_goes_on_to_what_is_not_there_yet(
    on_kafka: Cli, producer: KafkaProducer, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(producer, prefix, verdict("r1", 1))
    polls = iter(range(1000))
    poll = KafkaConsumer.poll

    def polled(self: KafkaConsumer, **options: Any) -> Any:
        if next(polls) == 4:
            put(producer, prefix, verdict("r1", 2))
        return poll(self, **options)

    monkeypatch.setattr(KafkaConsumer, "poll", polled)
    said = on_kafka("verdicts", "--follow", "--limit", 2, "-o", "ndjson")
    assert said.code == 0
    assert [row["seq"] for row in said.rows] == [1, 2]


@pytest.mark.usefixtures("topics")
def test_an_interrupt_ends_following_and_is_no_error(
    on_kafka: Cli, producer: KafkaProducer, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(producer, prefix, verdict("r1", 1))
    put(producer, prefix, verdict("r1", 2))

    def interrupted(self: KafkaConsumer, **options: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(KafkaConsumer, "poll", interrupted)
    assert on_kafka("verdicts", "--follow", "--new").code == 0
    assert on_kafka("verdicts").code != 0


# -- runs -------------------------------------------------------------------------------------


def summary(run: str, **more: Any) -> bytes:
    fields = {"scope": run, "run": run, "status": "active", "last_event": 1_700_000_000_000}
    return json.dumps(fields | {"partition": 0, "offset": 7} | more).encode()


@pytest.mark.usefixtures("topics")
def test_runs_show_their_latest_record(on_kafka: Cli, producer: KafkaProducer, prefix: str) -> None:
    blocked = summary(
        "r1",
        status="blocked",
        agent="a",
        detector="generic_repeat",
        count=20,
        reason="stuck",
        calls=21,
        standing=[{"detector": "generic_repeat", "count": 20, "signature": "exec:0f"}],
    )
    for run, value in (
        ("r1", summary("r1")),
        ("r1", blocked),
        ("r2", summary("r2")),
        ("r3", summary("r3")),
        ("r3", None),
        ("r4", b"nonsense"),
    ):
        partition = partition_of(run, 3)
        topic = f"{prefix}.runs"
        producer.send(topic, key=run.encode(), value=value, partition=partition).get(timeout=30)
    listed = on_kafka("runs", "list", "-o", "ndjson")
    assert sorted(row["run"] for row in listed.rows) == ["r1", "r2"]
    assert "not a run summary" in listed.err
    only = on_kafka("runs", "list", "--status", "blocked", "--agent", "a", "-o", "json")
    assert [row["run"] for row in only.json] == ["r1"]
    assert on_kafka("runs", "show", "r1", "-o", "json").json[0]["count"] == 20
    lines = on_kafka("runs", "show", "r1").out.splitlines()
    assert "status        blocked" in lines
    assert "detector      generic_repeat" in lines
    assert "count         20" in lines
    assert "reason        stuck" in lines
    assert "last event    2023-11-14 22:13:20.000+00:00" in lines
    assert "standing      generic_repeat (20): exec:0f" in lines
    unknown = on_kafka("runs", "show", "r3")
    assert unknown.code == 2
    assert "no worker knows this run" in unknown.err


@pytest.mark.usefixtures("topics")
def test_a_run_without_verdicts_is_told_on_stderr(on_kafka: Cli, prefix: str) -> None:
    said = on_kafka("verdicts", "--run", "typo")
    assert said.code == 0
    assert said.out == ""
    assert "there is no verdict on typo" in said.err
    assert f"--prefix {prefix}" in said.err
    assert on_kafka("verdicts").err == ""
