"""Whatever strangers send has a defined answer, costs no neighbour, and stops nobody."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgpack
import pytest
from kafka.admin import ConfigResource, KafkaAdminClient
from kafka.errors import MessageSizeTooLargeError

from loopstream.events import DeadLetter, RejectCode
from loopstream.sdk import Block
from loopstream.wire.codec import JSON_TYPE, decode_record, pack_frame
from loopstream.wire.routing import partition_of
from tests.e2e.house import PARTITIONS, Fields, House, actions, wait_for
from tests.e2e.play import hears, name, sent, turn, turns

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]

BLOCKS = {"enabled": True, "warningThreshold": 3, "criticalThreshold": 6}
BLOCKED = [("warn", "generic_repeat", 3), ("block", "generic_repeat", 6)]


def pair(run: str, number: int, **more: Any) -> list[Fields]:
    """One more call of a run that is stuck, and its outcome."""
    event = {"v": 1, "time": number, "run": run, "tool": "exec", "args": "{}"} | more
    return [event | {"type": "tool_call"}, event | {"type": "tool_outcome", "result": "1"}]


def pairs(run: str, count: int, **more: Any) -> list[Fields]:
    return [event for number in range(count) for event in pair(run, number, **more)]


def call(run: str, **more: Any) -> Fields:
    return pair(run, 0)[0] | more


def without(event: Fields, *names: str) -> Fields:
    return {field: value for field, value in event.items() if field not in names}


def letters_at(house: House, partition: int, offset: int) -> list[DeadLetter]:
    return [
        letter
        for letter in house.dead_letters()
        if (letter.partition, letter.offset) == (partition, offset)
    ]


# -- one bad event within a frame -------------------------------------------------------------

FP = {"v": 1, "documented": {"args": bytes(32)}}
UNDER_KEY = FP | {"key_id": "k"}


class Poison(NamedTuple):
    """An event that can't be used.

    ``made`` gets the id of a run on the frame's partition that nobody else has; ``before`` makes
    what that run has said already.
    """

    code: RejectCode
    made: Callable[[str], Any]
    before: Callable[[str], list[Fields]] = lambda _: []


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def elsewhere(run: str) -> str:
    """A run of another partition."""
    here = partition_of(run, PARTITIONS)
    return next(r for r in map(str, range(99)) if partition_of(r, PARTITIONS) != here)


IN_A_FRAME = {
    "no type": Poison(RejectCode.UNKNOWN_TYPE, lambda run: without(call(run), "type")),
    "unknown type": Poison(RejectCode.UNKNOWN_TYPE, lambda run: call(run, type="tool_dance")),
    "no event": Poison(RejectCode.INVALID, lambda _: 7),
    "null": Poison(RejectCode.INVALID, lambda _: None),
    "unknown major": Poison(RejectCode.UNKNOWN_VERSION, lambda run: call(run, v=2)),
    "no version": Poison(RejectCode.INVALID, lambda run: without(call(run), "v")),
    "no tool": Poison(RejectCode.INVALID, lambda run: without(call(run), "tool")),
    "null tool": Poison(RejectCode.INVALID, lambda run: call(run, tool=None)),
    "empty tool": Poison(RejectCode.INVALID, lambda run: call(run, tool="")),
    "text for a number": Poison(RejectCode.INVALID, lambda run: call(run, time="5")),
    "a fraction": Poison(RejectCode.INVALID, lambda run: call(run, time=5.0)),
    "beyond 64 bits": Poison(RejectCode.INVALID, lambda run: call(run, epoch=1, seq=2**63)),
    "long id": Poison(RejectCode.INVALID, lambda run: call(run + "x" * 128)),
    "short digest": Poison(
        RejectCode.INVALID, lambda run: call(run, fp={"v": 1, "documented": {"args": bytes(31)}})
    ),
    "deep": Poison(RejectCode.TOO_DEEP, lambda run: call(run, more=nested(9))),
    "no run, no session": Poison(RejectCode.NO_SCOPE, lambda run: without(call(run), "run")),
    "blank run": Poison(RejectCode.NO_SCOPE, lambda _: call(" \u3000")),
    "wrong partition": Poison(RejectCode.MISROUTED, lambda run: call(elsewhere(run))),
    "another agent": Poison(
        RejectCode.IDENTITY_MISMATCH,
        lambda run: call(run, agent="thief"),
        lambda run: [call(run, agent="owner")],
    ),
    "another session": Poison(
        RejectCode.IDENTITY_MISMATCH,
        lambda run: call(run, session="s2"),
        lambda run: [call(run, session="s1")],
    ),
    "another runner": Poison(
        RejectCode.IDENTITY_MISMATCH,
        lambda run: call(run, runner="r2"),
        lambda run: [call(run, runner="r1")],
    ),
    "digests of another profile": Poison(
        RejectCode.NO_FINGERPRINT, lambda run: call(run, fp={"v": 1, "reference": FP["documented"]})
    ),
    "a second key": Poison(
        RejectCode.KEY_MISMATCH,
        lambda run: call(run, fp=UNDER_KEY),
        lambda run: [call(run, fp=FP)],
    ),
    "raw under a key": Poison(
        RejectCode.RAW_UNDER_KEY, call, lambda run: [call(run, fp=UNDER_KEY)]
    ),
    "args are no JSON": Poison(RejectCode.RAW_UNDECODABLE, lambda run: call(run, args="{")),
    "args are NaN": Poison(RejectCode.RAW_UNDECODABLE, lambda run: call(run, args="[NaN]")),
    "a setting that nobody pushed": Poison(
        RejectCode.FORGED_CONTROL,
        lambda _: {
            "v": 1,
            "type": "control",
            "time": 0,
            "source": "config",
            "offset": 1_000_000,
            "sha256": hashlib.sha256(b'{"enabled":false}').digest(),
            "key": "*",
            "body": '{"enabled":false}',
        },
    ),
}


def test_a_bad_event_costs_no_neighbour_in_its_frame(house: House) -> None:
    placed = {}
    for title, poison in IN_A_FRAME.items():
        good = name()
        partition = house.partition(good)
        bad = house.run_on(partition, f"bad-{good}")
        before = [*poison.before(bad), *pairs(good, 3)]
        frame = [*before, poison.made(bad), *pairs(good, 3)]
        _, offset = house.send_frame(frame, partition)
        placed[title] = (good, partition, offset, len(before), pack_frame(frame))
    house.settle()
    for title, (good, partition, offset, index, value) in placed.items():
        letters = letters_at(house, partition, offset)
        found = [(letter.code, letter.index) for letter in letters]
        assert found == [(IN_A_FRAME[title].code, index)], title
        assert letters[0].sha256 == hashlib.sha256(value).digest()
        assert letters[0].topic == house.topics.events
        assert letters[0].sample is None
        assert actions(house.verdicts(good)) == BLOCKED, title


# -- one bad record ---------------------------------------------------------------------------


class Bad(NamedTuple):
    """A record that can't be used as a whole."""

    code: RejectCode
    value: bytes | None
    content_type: bytes | None = None


RECORDS = {
    "tombstone": Bad(RejectCode.NULL_VALUE, None),
    "empty": Bad(RejectCode.UNDECODABLE, b""),
    "noise": Bad(RejectCode.UNDECODABLE, bytes(range(200, 256))),
    "truncated frame": Bad(RejectCode.UNDECODABLE, pack_frame(pairs("r", 2))[:-5]),
    "a frame and more": Bad(RejectCode.UNDECODABLE, pack_frame(pairs("r", 2)) + b"\x01"),
    "a number": Bad(RejectCode.UNDECODABLE, msgpack.packb(5)),
    "a lie about its size": Bad(RejectCode.UNDECODABLE, b"\xdf\xff\xff\xff\xff"),
    "truncated JSON": Bad(RejectCode.UNDECODABLE, b'{"v":1,"type":"tool_call"'),
    "JSON in name only": Bad(RejectCode.UNDECODABLE, pack_frame(pairs("r", 1)), JSON_TYPE),
    "a lone surrogate for an id": Bad(
        RejectCode.UNDECODABLE,
        b'{"v":1,"type":"tool_call","time":0,"tool":"exec","run":"\\ud800"}',
    ),
    "over the bound": Bad(RejectCode.OVERSIZE_RECORD, pack_frame([{"pad": "x" * 1_100_000}])),
    "a big envelope": Bad(
        RejectCode.OVERSIZE_EVENT, json.dumps(call("r", more="x" * 70_000)).encode()
    ),
    "a JSON bomb": Bad(RejectCode.TOO_DEEP, b'{"v":1,"type":' + b"[" * 500_000),
    "a msgpack bomb": Bad(RejectCode.UNDECODABLE, b"\x91" * 500_000),
    "too many events": Bad(RejectCode.TOO_MANY_EVENTS, pack_frame([{}] * 4097)),
    "frame of another major": Bad(
        RejectCode.UNKNOWN_VERSION, msgpack.packb({"v": 2, "events": pairs("r", 1)})
    ),
    "events are no list": Bad(RejectCode.INVALID, msgpack.packb({"v": 1, "events": {}})),
}


def test_a_bad_record_costs_no_neighbour_on_its_partition(house: House) -> None:
    placed = {}
    for title, bad in RECORDS.items():
        good = name()
        partition = house.partition(good)
        house.send_frame(pairs(good, 3))
        offset = house.send(bad.value, partition, content_type=bad.content_type, key=b"k")
        house.send_frame(pairs(good, 3))
        placed[title] = (good, partition, offset)
    house.settle()
    for title, (good, partition, offset) in placed.items():
        letters = letters_at(house, partition, offset)
        assert [(letter.code, letter.index) for letter in letters] == [(RECORDS[title].code, -1)], (
            title
        )
        assert letters[0].sha256 == hashlib.sha256(RECORDS[title].value or b"").digest()
        assert actions(house.verdicts(good)) == BLOCKED, title


def test_every_code_is_tried() -> None:
    tried = {poison.code for poison in IN_A_FRAME.values()} | {bad.code for bad in RECORDS.values()}
    elsewhere = {
        RejectCode.SETTINGS_REFUSED,  # test_live_settings.py
        RejectCode.BAD_SIGNATURE,  # tests/security/test_signed_worker.py
    }
    assert tried | elsewhere == set(RejectCode)


def test_a_bad_single_event_is_no_frame(house: House) -> None:
    good = name()
    partition = house.partition(good)
    bad = house.run_on(partition, f"bad-{good}")
    house.send_frame(pairs(good, 3))
    offsets = [
        house.send(json.dumps(call(bad, tool=7)).encode(), partition),
        house.send(msgpack.packb(call(bad, tool=7)), partition),
    ]
    house.send_json(*pairs(good, 3))
    house.settle()
    letters = [letter for offset in offsets for letter in letters_at(house, partition, offset)]
    assert [letter.code for letter in letters] == [RejectCode.INVALID] * 2
    assert all("tool" in (letter.detail or "") for letter in letters)
    assert actions(house.verdicts(good)) == BLOCKED


def test_the_broker_refuses_what_is_far_too_big(house: House) -> None:
    with pytest.raises(MessageSizeTooLargeError):
        house.send(b"x" * 2_000_000, 0)


def test_the_sdk_goes_on_after_a_refused_frame(bootstrap: str, prefix: str, tmp_path: Path) -> None:
    """Brokers may be set up with another bound than ours."""
    small, run_id = House(bootstrap, prefix, tmp_path), name()
    try:
        lower_bound(small, 5_000)
        with small.runner(capture="full", redact=None) as runner, runner.run(run_id) as run:
            turn(run, "write", {"text": "short"}, result="ok")
            sent(runner)
            run.before_call("write", {"text": "z" * 200_000})
            wait_for("it is refused", lambda: runner.counters["events_dropped"] == 1)
            turns(run, 3)
            sent(runner)
            assert runner.counters["events_dropped"] == 1
        records = [decode_record(record.value).events for record in small.events()]
        told = [event.type for events in records for event in events]
        assert told.count("tool_call") == told.count("tool_outcome") == 4
        assert told.count("events_lost") == 1
    finally:
        small.close()


def lower_bound(house: House, size: int) -> None:
    """Have the broker take smaller records only."""
    client = KafkaAdminClient(bootstrap_servers=house.bootstrap)
    settings = {"max.message.bytes": str(size), "message.timestamp.type": "LogAppendTime"}
    client.alter_configs([ConfigResource("topic", house.topics.events, settings)])
    client.close()

    def refuses() -> bool:
        try:
            house.send(bytes(size), 0)
        except MessageSizeTooLargeError:
            return True
        return False

    wait_for("the bound is in force", refuses)


# -- odd, and taken all the same --------------------------------------------------------------

ODD_ARGS = {
    "lone surrogate": '{"s":"\\ud800"}',
    "beyond 64 bits": '{"n":123456789012345678901234567890}',
    "beyond a double": '{"n":1e999,"m":' + "9" * 5000 + "}",
    "deep": "[" * 200 + "]" * 200,
    "long": json.dumps("x" * 300_000),
    "two of one key": '{"a":1,"a":2}',
}


def test_odd_arguments_are_judged_like_others(house: House) -> None:
    runs = {title: name() for title in ODD_ARGS}
    for title, run in runs.items():
        house.send_json(*pairs(run, 6, args=ODD_ARGS[title]))
    house.settle()
    for title, run in runs.items():
        assert actions(house.verdicts(run)) == BLOCKED, title


def test_the_sdk_tells_oversize_arguments_by_their_digest(house: House) -> None:
    run_id, args = name(), {"text": "x" * 3_000_000}
    with house.runner() as runner, runner.run(run_id) as run:
        for _ in range(6):
            turn(run, "write", args, result=args)
        hears(runner, 2)
        assert isinstance(turn(run, "write", args), Block)
        assert turn(run, "write", {"text": "y" * 3_000_000}, result="ok").allowed
    house.settle()
    assert actions(house.verdicts(run_id))[:2] == BLOCKED


def test_repeated_events_count_once(house: House) -> None:
    by_number, by_id = name(), name()
    for number in range(6):
        for run, named in ((by_number, numbered), (by_id, identified)):
            call, outcome = pair(run, number)
            events = [call | named(2 * number + 1), outcome | named(2 * number + 2)]
            house.send_json(*events, *events)
    # An older epoch is over, and numbers that went by do not come back.
    house.send_json(*pairs(by_number, 6, epoch=0, seq=99), *pairs(by_number, 6, epoch=1, seq=3))
    house.settle()
    assert actions(house.verdicts(by_number)) == BLOCKED
    assert actions(house.verdicts(by_id)) == BLOCKED
    assert house.summaries()[by_number]["outcomes"] == house.summaries()[by_id]["outcomes"] == 6


def numbered(number: int) -> Fields:
    return {"epoch": 1, "seq": number}


def identified(number: int) -> Fields:
    return {"id": str(number)}


def test_a_gap_is_noted_and_costs_nothing_else(house: House) -> None:
    run = name()
    events = [event | {"epoch": 1, "seq": at} for at, event in enumerate(pairs(run, 8))]
    house.send_json(*events[:4], *events[8:])
    house.settle()
    assert actions(house.verdicts(run)) == BLOCKED
    shown = house.summaries()[run]
    assert (shown["gaps"], shown["lost"]) == (1, 0)


def test_lost_events_are_known(house: House) -> None:
    run = name()
    lost = {"v": 1, "type": "events_lost", "time": 0, "run": run, "count": 12}
    house.send_json(*pairs(run, 1), lost, *pairs(run, 1))
    house.settle()
    assert house.summaries()[run]["lost"] == 12


def test_events_after_the_end_of_a_run_still_count(house: House) -> None:
    run = name()
    house.send_json(*pairs(run, 3), {"v": 1, "type": "run_ended", "time": 0, "run": run})
    house.send_json(*pairs(run, 3))
    house.settle()
    assert actions(house.verdicts(run)) == BLOCKED
    assert house.summaries()[run]["status"] == "ended"


def test_a_foreign_pin_and_a_repeated_setting_have_no_effect(house: House) -> None:
    run = name()
    pin = {"v": 1, "type": "pin", "time": 0, "config_offset": 5, "commands_offset": 7}
    pin |= {"settings": {"*": '{"enabled":false}'}, "policy": "{}"}
    control = IN_A_FRAME["a setting that nobody pushed"].made(run) | {"offset": 0}
    partition, offset = house.send_frame([*pairs(run, 3), pin, control, *pairs(run, 3)])
    house.settle()
    assert actions(house.verdicts(run)) == BLOCKED
    assert letters_at(house, partition, offset) == []
