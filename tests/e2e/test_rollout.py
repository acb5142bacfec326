"""An agent's detectors are rolled out step by step, in the midst of its run; then it is stopped."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from loopstream.sdk import Block, RunAborted, Warn
from loopstream.web.commands import Desk
from tests.e2e.house import House, actions, wait_for
from tests.e2e.oracle import assert_exact
from tests.e2e.play import DONE, LS, hears, name, sent, turn, turns

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]

BLOCKS = {"enabled": True}
TINY = {"warningThreshold": 3, "criticalThreshold": 6}


def put(house: House, mode: str) -> None:
    """Push the agent's mode and wait until it is in force everywhere."""
    own = {"id": "new", "tools": {"loopDetection": {**TINY, "mode": mode}}}
    (change,) = house.push({"agents": {"list": [own]}})
    house.await_settings(change.offset or 0)


def test_shadow_then_warn_then_enforce_and_back(house: House) -> None:
    run_id = name()
    with house.runner("new") as runner, runner.run(run_id) as run:
        put(house, "shadow")
        turns(run, 8)  # the seventh would be refused
        hears(runner, 3)
        assert runner.counters["verdicts_shadow"] == 3
        put(house, "warn")
        turns(run, 1)
        hears(runner, 4)
        warned = turn(run, "exec", LS, result=DONE)
        assert isinstance(warned, Warn)
        put(house, "enforce")
        run.compacted()
        wait_for("it is refused", lambda: isinstance(run.before_call("exec", LS), Block))
        put(house, "off")
        run.compacted()
        wait_for("it may go on", lambda: turn(run, "exec", LS, result=DONE).allowed)
        sent(runner)
    assert_exact(house)
    said = house.verdicts(run_id)
    assert [(v.action.value, v.count) for v in said if v.mode == "shadow"] == [
        ("warn", 3),
        ("block", 6),
        ("block", 7),
    ]
    enforced = [v for v in said if v.mode == "enforce"]
    assert (enforced[0].action.value, enforced[0].instead_of) == ("warn", "block")
    kinds = list(dict.fromkeys(v.action.value for v in enforced))
    assert kinds == ["warn", "block", "release"]


def test_one_command_stops_all_runs_of_an_agent(house: House) -> None:
    runs, other = [name() for _ in range(4)], name()
    with house.runner("rogue") as rogue, house.runner("calm") as calm:
        going: list[Any] = [rogue.run(run_id) for run_id in runs]
        for run in going:
            turns(run, 1)
        bystander = calm.run(other)
        turns(bystander, 1)
        sent(rogue)
        sent(calm)
        house.settle()
        asyncio.run(Desk(house.settings).write_to_agent("abort", "rogue", "enough", "ada"))
        for run in going:
            wait_for("it is stopped with its next event", partial(stopped, run))
        turns(bystander, 2)
        late = rogue.run(name())
        turns(late, 2)
        sent(rogue)
    assert_exact(house)
    for run_id in runs:
        (ended,) = house.verdicts(run_id)
        assert actions([ended]) == [("abort", "operator", 0)]
        assert (ended.evidence.by, ended.evidence.note) == ("ada", "enough")
    assert house.verdicts(other) == []


def stopped(run: Any) -> bool:
    """It is asked with a call, which is an event, and each time another one."""
    try:
        turn(run, "read", {"path": name()}, result="text")
    except RunAborted:
        return True
    return False
