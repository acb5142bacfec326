"""Settings and commands that come back in the partition's own order."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopstream.events.control import Pin
from loopstream.partition.settings import SettingsInForce
from loopstream.policy.deployment import Deployment, Profile
from loopstream.wire.verdicts import decode_verdict, encode_model
from tests.partition.driver import (
    DIGEST,
    RESULT,
    Feed,
    Fields,
    Record,
    Sources,
    call,
    control_of,
    fields_of,
    frame,
    outcome,
    started,
)

ON = {"enabled": True, "warningThreshold": 2, "criticalThreshold": 4}


def looping(run: str = "r1", times: int = 4, **more: Any) -> list[Fields]:
    return [event for _ in range(times) for event in (call(run, **more), outcome(run, **more))]


def sequenced(feed: Feed) -> list[Fields]:
    """What the owner appends to the partition now."""
    return [fields_of(control) for control in feed.partition.pending_controls()]


def on_everyone(feed: Feed, block: object) -> Fields:
    feed.sources.push("config", "*", block)
    return control_of(feed.sources.topics["config"][-1], "config")


# -- settings --------------------------------------------------------------------------------


def test_what_the_topic_says_first_is_in_force_from_the_first_event() -> None:
    feed = Feed(settings=ON).feed(*looping())
    assert feed.said()[-1] == ("block", "generic_repeat", 4)
    assert sequenced(feed) == []


def test_new_settings_count_where_they_come_back() -> None:
    feed = Feed().feed(*looping())
    feed.sources.push("config", "*", ON)
    feed.feed(started())
    assert feed.said() == []
    (control,) = sequenced(feed)
    feed.feed(control, started())
    assert feed.said() == [("block", "generic_repeat", 4)]
    assert sequenced(feed) == []


def test_an_agents_block_goes_over_everyones() -> None:
    feed = Feed(settings=ON)
    feed.sources.push("config", "careful", {"criticalThreshold": 3})
    feed.feed(*sequenced(feed))
    feed.feed(*looping("r1", 3, agent="careful"), *looping("r2", 3, agent="other"))
    blocks = [verdict.run for _, verdict in feed.partition.verdicts if verdict.action == "block"]
    assert blocks == ["r1"]


def test_a_block_is_taken_away_by_a_tombstone() -> None:
    feed = Feed(settings=ON).feed(*looping())
    feed.feed(on_everyone(feed, None), started())
    assert feed.said()[-1] == ("release", "generic_repeat", 4)


REFUSED = {
    "no object": [1],
    "null": None,
    "history over the row's bound": {"enabled": True, "historySize": 10_001},
    "window over the row's bound": {"postCompactionGuard": {"windowSize": 1_001}},
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_block_is_refused_and_the_old_one_kept(name: str) -> None:
    feed = Feed(settings=ON)
    text = json.dumps(REFUSED[name])
    feed.sources.push("config", "*", None, text=text)
    feed.feed(frame([call("r2"), *sequenced(feed), call("r2")]), *looping())
    assert feed.codes == ["settings_refused"]
    assert feed.history("r2") == 2
    assert feed.said()[-1] == ("block", "generic_repeat", 4)
    assert sequenced(feed) == []


def test_a_block_that_is_no_json_is_refused() -> None:
    feed = Feed(settings=ON)
    feed.sources.push("config", "*", None, text="[" * 60_000)
    feed.feed(*sequenced(feed), *looping())
    assert feed.codes == ["settings_refused"]
    assert feed.said()[-1] == ("block", "generic_repeat", 4)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(("enabled", "windowSize", "pingPong", "x")), inner)
    ),
    max_leaves=5,
)
NAMES = st.sampled_from(
    (
        *("enabled", "historySize", "warningThreshold", "criticalThreshold"),
        *("unknownToolThreshold", "globalCircuitBreakerThreshold", "detectors"),
        *("postCompactionGuard", "other"),
    )
)


@pytest.mark.slow
@settings(derandomize=True, database=None, deadline=None, max_examples=300)
@given(st.dictionaries(NAMES, JSON) | JSON, st.dictionaries(NAMES, JSON) | JSON)
def test_any_block_is_taken_or_refused(everyone: object, own: object) -> None:
    for profile in ("documented", "reference-2026-9"):
        in_force = SettingsInForce(profile)
        for key, block in (("*", everyone), ("a", own)):
            why = in_force.put(key, json.dumps(block))
            assert why is None or (key not in in_force.blocks and len(why) < 200)
        for agent in ("a", "b", None):
            limits = in_force.limits(agent)
            assert 0 < limits.history_size <= 10_000
            assert 0 < limits.guard_window <= 1_000
            assert 0 < limits.warning < limits.critical < limits.breaker


@pytest.mark.parametrize("text", ['{"historySize": 1e400}', '{"historySize": ' + "9" * 5_000 + "}"])
def test_absurd_sizes_do_no_harm(text: str) -> None:
    in_force = SettingsInForce("documented")
    in_force.put("*", text)
    assert in_force.limits(None).history_size <= 10_000


# -- forgeries -------------------------------------------------------------------------------

FORGED: dict[str, Fields] = {
    "wrong digest": {"sha256": b"\0" * 32},
    "other body": {"body": '{"enabled": false}'},
    "other body with its digest": {
        "body": '{"enabled": false}',
        "sha256": hashlib.sha256(b'{"enabled": false}').digest(),
    },
    "no body": {"body": None},
    "other key": {"key": "agent"},
    "other source": {"source": "commands"},
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_control_has_no_effect(name: str) -> None:
    feed = Feed(settings=ON)
    feed.sources.push("commands", "r1", {"action": "release"})
    true = on_everyone(feed, {"enabled": True, "criticalThreshold": 3, "warningThreshold": 2})
    if name == "other source":
        true |= {"offset": 0}
    forged = {k: v for k, v in (true | FORGED[name]).items() if v is not None}
    feed.feed(frame([call("r2"), forged, call("r2")]), *looping())
    assert feed.codes == ["forged_control"]
    assert feed.partition.dead_letters[0].index == 1
    assert feed.history("r2") == 2
    assert feed.said()[-1] == ("block", "generic_repeat", 4)
    feed.feed(*sequenced(feed), *looping("r3", 3))
    assert feed.said()[-1] == ("block", "generic_repeat", 3)


def test_an_offset_that_never_was_waits_until_the_sources_are_read_to_their_end() -> None:
    feed = Feed(settings=ON)
    forged = control_of(feed.sources.topics["config"][0], "config", offset=10**15)
    record = Record(0, frame([call(), forged, call()]))
    for _ in range(2):
        assert feed.partition.apply(record) is False
        assert (feed.counts, feed.partition.last_offset, feed.partition.dirty) == ({}, None, 0)
    with feed.sources.certain():
        assert feed.partition.apply(record) is True
    assert feed.codes == ["forged_control"]
    assert feed.history() == 2


def test_an_offset_not_read_yet_waits() -> None:
    feed = Feed(settings=ON)
    control = on_everyone(feed, {"enabled": False})
    feed.sources.read = 1
    record = Record(0, frame([control, call()]))
    assert feed.partition.apply(record) is False
    feed.sources.read = None
    assert feed.partition.apply(record) is True
    assert (feed.codes, feed.counts) == ([], {"control": 1, "applied": 1})


def test_doubles_do_no_harm() -> None:
    feed = Feed(settings=ON)
    first = on_everyone(feed, {"enabled": False})
    second = on_everyone(feed, ON)
    feed.feed(first, second, first, first | {"body": "forged, but late"}, *looping())
    assert feed.codes == []
    assert feed.said()[-1] == ("block", "generic_repeat", 4)


def test_a_strangers_pin_has_no_effect() -> None:
    feed = Feed(settings=ON)
    ours = feed.partition.pin(now_ms=5)
    fields = ours.model_dump() | {"settings": {"*": '{"enabled": false}'}}
    feed.feed(fields, *looping())
    before = feed.partition.pinned
    assert not before
    assert feed.counts["foreign_pin"] == 1
    assert feed.said()[-1] == ("block", "generic_repeat", 4)
    feed.feed(ours.model_dump())
    feed.checkpoint()
    feed.restart()
    assert feed.partition.pinned
    assert feed.partition.pin(now_ms=9) == Pin.model_validate(ours.model_dump() | {"time": 9})


def test_a_fresh_partition_pins_the_present() -> None:
    sources = Sources()
    sources.push("config", "*", {"enabled": False})
    sources.push("config", "*", ON)
    sources.push("commands", "r1", {"action": "abort"})
    pin = Feed(sources=sources).partition.pin(now_ms=7)
    assert (pin.config_offset, pin.commands_offset, pin.time) == (1, 0, 7)
    assert {key: json.loads(text) for key, text in pin.settings.items()} == {"*": ON}
    assert json.loads(pin.policy)["profile"] == "documented"


# -- commands --------------------------------------------------------------------------------


def command(feed: Feed, action: str, run: str = "r1", **more: Any) -> Fields:
    feed.sources.push("commands", run, {"action": action, "by": "ann", "reason": "seen"} | more)
    return control_of(feed.sources.topics["commands"][-1], "commands")


def test_a_release_lets_the_run_go_on() -> None:
    feed = Feed(settings=ON).feed(*looping())
    feed.feed(command(feed, "release"), *looping(times=3))
    assert [said for said in feed.said() if said[0] == "block"] == [("block", "generic_repeat", 4)]
    assert ("release", "generic_repeat", 4) in feed.said()
    assert feed.partition.live["r1"].standing == {}


def test_what_an_operator_lets_go_and_ends_carries_who_and_why() -> None:
    feed = Feed(settings=ON).feed(*looping())
    feed.feed(command(feed, "release"), command(feed, "abort"), command(feed, "release"))
    ordered = [v for _, v in feed.partition.verdicts if v.evidence.command is not None]
    assert [(v.action.value, v.detector) for v in ordered] == [
        ("release", "generic_repeat"),
        ("abort", "operator"),
        ("release", "operator"),
    ]
    for offset, verdict in enumerate(ordered):
        evidence = verdict.evidence
        assert (evidence.by, evidence.note, evidence.command) == ("ann", "seen", offset)
        assert verdict.reason == "By ann: seen"


@pytest.mark.parametrize("profile", ["documented", "reference-2026-9"])
def test_in_both_profiles_a_release_says_why(profile: Profile) -> None:
    feed = Feed(settings=ON, deployment=Deployment("test", profile=profile))
    fields = {"args": DIGEST, "result": RESULT}
    name = "documented" if profile == "documented" else "reference"
    pair = [
        event | {"fp": {"v": 1, name: {k: fields[k] for k in keys}}}
        for event, keys in ((call(), ("args",)), (outcome(), ("args", "result")))
    ]
    feed.feed(*(pair * 24), command(feed, "release"))
    released = feed.partition.verdicts[-1][1]
    assert (released.action.value, released.reason) == ("release", "By ann: seen")
    assert released.evidence.note == "seen"


@settings(derandomize=True, database=None, deadline=None, max_examples=200)
@given(JSON | st.text(max_size=2_000), JSON | st.text(max_size=2_000))
def test_whatever_an_operator_calls_himself_a_verdict_holds_it(by: object, reason: object) -> None:
    feed = Feed().feed(call())
    feed.feed(command(feed, "abort", by=by, reason=reason))
    _, said = feed.partition.verdicts[-1]
    assert said.action == "abort"
    for form in ("msgpack", "json"):
        assert decode_verdict(encode_model(said, form)) == said
    for text in (said.reason, said.evidence.by or "", said.evidence.note or ""):
        assert not any(ord(each) < 0x20 or 0x7F <= ord(each) < 0xA0 for each in text)


@pytest.mark.parametrize(
    "body", ['{"action": "abort", "by": "\\ud800", "reason": "\\udfff\\n\\u0000x"}']
)
def test_half_a_character_in_a_name_stops_no_worker(body: str) -> None:
    feed = Feed().feed(call())
    feed.sources.push("commands", "r1", None, text=body)
    feed.feed(*sequenced(feed))
    _, said = feed.partition.verdicts[-1]
    assert decode_verdict(encode_model(said)) == said
    assert said.reason == "By ?: ? x"


def test_an_abort_stands_and_a_release_lifts_it() -> None:
    feed = Feed().feed(call())
    feed.feed(command(feed, "abort"), command(feed, "abort"), started(resumed=True))
    assert [action for action, _, _ in feed.said()] == ["abort", "abort"]
    reason = feed.partition.verdicts[0][1].reason
    assert "ann" in reason
    assert "seen" in reason
    feed.feed(command(feed, "release"), started(resumed=True))
    assert [action for action, _, _ in feed.said()] == ["abort", "abort", "release"]


@pytest.mark.parametrize("position", ["before", "between", "after"])
def test_a_command_may_share_a_frame_with_its_run(position: str) -> None:
    feed = Feed(settings=ON)
    loop = looping()
    release = command(feed, "release")
    place = {"before": 0, "between": 2, "after": len(loop)}[position]
    feed.feed(frame([*loop[:place], release, *loop[place:]]))
    assert feed.history() == 4
    alone = Feed(settings=ON)
    release = command(alone, "release")
    alone.feed(*loop[:place], release, *loop[place:])
    assert feed.said() == alone.said()


def test_two_commands_may_share_a_frame() -> None:
    feed = Feed().feed(call())
    feed.feed(frame([command(feed, "abort"), command(feed, "release")]))
    assert [action for action, _, _ in feed.said()] == ["abort", "release"]


def test_a_command_that_is_replayed_is_carried_out_once() -> None:
    feed = Feed().feed(call())
    control = frame([command(feed, "abort")])
    before = feed.rows.copy()
    feed.feed(control)
    feed.checkpoint()
    # The marker's write was lost, the row's was not.
    feed.rows.update({key: row for key, row in before.items() if key[:1] == b"\xff"})
    feed.restart()
    assert feed.partition.apply(Record(1, control))
    assert feed.said() == []
    assert feed.partition.live["r1"].aborted is not None


def test_a_command_for_another_partition_is_not_ours() -> None:
    feed = Feed(partitions=8, number=0, deployment=Deployment("test"))
    names = [f"r{n}" for n in range(40)]
    for name in names:
        feed.sources.push("commands", name, {"action": "abort"})
    ours = {control.key for control in feed.partition.pending_controls()}
    assert 0 < len(ours) < len(names)


@pytest.mark.parametrize(
    "text", ["", "[]", '{"action": "explode"}', "{", "[" * 60_000, '{"action": 1}']
)
def test_a_command_that_makes_no_sense_is_a_dead_letter(text: str) -> None:
    feed = Feed().feed(call())
    feed.sources.push("commands", "r1", None, text=text or " ")
    feed.feed(*sequenced(feed))
    assert feed.codes == ["invalid"]
    assert feed.said() == []


def test_a_command_to_a_run_that_never_was_leaves_no_row_for_ever() -> None:
    feed = Feed()
    feed.feed(command(feed, "abort", "nobody"), at=1_000)
    feed.checkpoint()
    feed.feed(call("other"), at=1_000 + feed.deployment.idle_ms + 1)
    assert feed.partition.expired(feed.rows[b"nobody"])
