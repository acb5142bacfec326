"""A deployment in shadow mode says what it would do, and nobody acts on it."""

from __future__ import annotations

import pytest

from loopstream.sdk import Allow
from tests.e2e.house import House, actions
from tests.e2e.play import DONE, LS, hears, name, sent, turn, turns

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]

BLOCKS = {"enabled": True, "warningThreshold": 3, "criticalThreshold": 6}
VALUES = {"deployment.mode": "shadow"}


def test_shadow_verdicts_are_counted_and_not_acted_on(house: House) -> None:
    run_id = name()
    with house.runner("coder") as runner, runner.run(run_id) as run:
        turns(run, 6)
        hears(runner, 2)
        assert isinstance(turn(run, "exec", LS, result=DONE), Allow)
        assert isinstance(run.before_call("exec", LS, wait=30), Allow)
        run.compacted(retried=True)
        turns(run, 3)
        sent(runner)
        house.settle()
        said = house.verdicts(run_id)
        hears(runner, len(said))
        turns(run, 1)
        counters = runner.counters
    assert {verdict.mode for verdict in said} == {"shadow"}
    assert actions(said)[:2] == [("warn", "generic_repeat", 3), ("block", "generic_repeat", 6)]
    assert {"answer", "abort"} <= {str(verdict.action) for verdict in said}
    assert counters["verdicts_shadow"] == len(said)
    assert counters["blocks"] == counters["warns"] == counters["aborts"] == 0
