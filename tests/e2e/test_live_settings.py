"""Detector settings change while runs are under way, at the same record for everyone."""

from __future__ import annotations

from typing import Any

import pytest

from loopstream.events import RejectCode
from loopstream.sdk import Block
from tests.e2e.house import PARTITIONS, House, actions
from tests.e2e.oracle import assert_exact
from tests.e2e.play import LS, hears, name, sent, turn, turns

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]

BLOCKS = {"enabled": True}


def put(house: House, **blocks: dict[str, Any]) -> None:
    """Push agents' blocks and wait until they are in force everywhere."""
    agents = [{"id": a, "tools": {"loopDetection": block}} for a, block in blocks.items()]
    changes = house.push({"agents": {"list": agents}})
    assert len(changes) == len(blocks)
    house.await_settings(max(change.offset or 0 for change in changes))


def test_a_pushed_setting_takes_hold_in_the_midst_of_a_run(house: House) -> None:
    run_id = name()
    with house.runner("tuned") as runner, runner.run(run_id) as run:
        turns(run, 8)
        sent(runner)
        house.settle()
        assert house.verdicts(run_id) == []
        put(house, tuned={"warningThreshold": 4, "criticalThreshold": 8})
        # What is in force is looked at with the run's next event, whatever it is.
        turn(run, "read", {}, result="text")
        hears(runner, 1)
        blocked = turn(run, "exec", LS)
        assert isinstance(blocked, Block)
        assert blocked.count == 8
        put(house, tuned={"warningThreshold": 4, "criticalThreshold": 12})
        turn(run, "read", {}, result="more text")
        sent(runner)
        house.settle()
        hears(runner, 3)
        assert actions(house.verdicts(run_id))[-1] == ("release", "generic_repeat", 8)
        assert turn(run, "exec", LS, result="ok").allowed
    assert_exact(house)


def test_a_block_that_is_taken_away_is_no_longer_in_force(house: House) -> None:
    run_id = name()
    put(house, passing={"warningThreshold": 2, "criticalThreshold": 3})
    house.await_settings(house.write_config("passing", None))
    with house.runner("passing") as runner, runner.run(run_id) as run:
        turns(run, 9)
    assert_exact(house)
    assert house.verdicts(run_id) == []


BAD = {
    "history": b'{"enabled": true, "historySize": 10001}',
    "window": b'{"postCompactionGuard": {"windowSize": 1001}}',
    "truncated": b'{"warningThreshold": 2',
    "list": b'["enabled"]',
    "null": b"null",
}


def test_a_bad_block_is_refused_and_the_old_one_kept(house: House) -> None:
    put(house, **{agent: {"warningThreshold": 2, "criticalThreshold": 5} for agent in BAD})
    offsets = {agent: house.write_config(agent, bad) for agent, bad in BAD.items()}
    house.await_settings(max(offsets.values()))
    runs = {agent: stuck(house, agent, 5) for agent in BAD}
    assert_exact(house)
    told = {(letter.partition, letter.offset): letter for letter in house.dead_letters()}
    for agent, run_id in runs.items():
        assert actions(house.verdicts(run_id)) == [
            ("warn", "generic_repeat", 2),
            ("block", "generic_repeat", 5),
        ], agent
        letters = [told[place] for place in house.copies(offsets[agent])]
        assert len({letter.partition for letter in letters}) == PARTITIONS, agent
        assert {letter.code for letter in letters} == {RejectCode.SETTINGS_REFUSED}, agent
        assert {letter.index for letter in letters} == {0}, agent


def test_what_can_not_be_copied_into_the_events_is_passed_over(house: House) -> None:
    put(house, copied={"warningThreshold": 2, "criticalThreshold": 5})
    junk = [house.write_config("copied", b"\xff\xfe"), house.write_config("copied", b"7" * 70_000)]
    put(house, copied={"warningThreshold": 2, "criticalThreshold": 4})
    run_id = stuck(house, "copied", 4)
    assert_exact(house)
    assert actions(house.verdicts(run_id))[-1] == ("block", "generic_repeat", 4)
    assert not any(house.copies(offset) for offset in junk)


def stuck(house: House, agent: str, times: int) -> str:
    """Play a run that makes one call again and again; its id."""
    run_id = name()
    with house.runner(agent) as runner, runner.run(run_id) as run:
        turns(run, times)
    return run_id
