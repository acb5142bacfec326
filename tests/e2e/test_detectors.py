"""Each detector's warning and block, through SDK, Kafka and worker, under documented settings."""

from __future__ import annotations

import pytest

from loopstream.sdk import Block, Warn
from tests.e2e.house import House, actions
from tests.e2e.play import DONE, LS, POLL, RUNNING, hears, name, sent, turn, turns

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]

BLOCKS = {
    "tools": {"loopDetection": {"enabled": True}},
    "agents": {
        "list": [
            {
                "id": "switched-off-poll",
                "tools": {"loopDetection": {"detectors": {"knownPollNoProgress": False}}},
            },
            {
                "id": "patient",
                "tools": {
                    "loopDetection": {
                        "historySize": 100,
                        "warningThreshold": 3,
                        "criticalThreshold": 60,
                        "globalCircuitBreakerThreshold": 70,
                    }
                },
            },
        ]
    },
}


@pytest.mark.parametrize(
    ("detector", "tool", "args", "result"),
    [
        ("generic_repeat", "exec", LS, DONE),
        ("known_poll_no_progress", "process", POLL, RUNNING),
        ("known_poll_no_progress", "command_status", {"id": 7}, "running"),
    ],
    ids=["generic_repeat", "process poll", "command_status"],
)
def test_a_repeated_call_is_warned_then_blocked(
    house: House, detector: str, tool: str, args: object, result: object
) -> None:
    run_id = name()
    with house.runner("coder") as runner, runner.run(run_id) as run:
        turns(run, 11, tool, args, result=result)
        hears(runner, 1)
        warned = turn(run, tool, args, result=result)
        assert isinstance(warned, Warn)
        assert (warned.detector, warned.count) == (detector, 10)
        turns(run, 8, tool, args, result=result)
        hears(runner, 2)
        blocked = turn(run, tool, args, result=result)
        assert isinstance(blocked, Block)
        assert (blocked.detector, blocked.count) == (detector, 20)
        assert blocked.result == {
            "content": [{"type": "text", "text": blocked.reason}],
            "details": {
                "status": "blocked",
                "deniedReason": "tool-loop",
                "reason": blocked.reason,
            },
        }
        assert turn(run, tool, {"action": "other"}, result=result).allowed
    house.settle()
    # The second block answers the call that was refused.
    said = house.verdicts(run_id)
    assert actions(said) == [("warn", detector, 10), *[("block", detector, 20)] * 2]
    assert [verdict.seq for verdict in said] == [1, 2, 3]
    assert {verdict.threshold for verdict in said} == {10, 20}
    assert said[2].evidence.event == blocked.call.event
    assert said[1].applies_to == said[2].applies_to
    assert [target.signature for target in said[1].applies_to] == [blocked.call.signature]


def test_two_calls_in_turns_are_warned_then_blocked(house: House) -> None:
    run_id, pair = name(), (("read", {"path": "a"}, "80"), ("exec", {"command": "lint"}, DONE))
    with house.runner("coder") as runner, runner.run(run_id) as run:
        for at in range(10):
            tool, args, result = pair[at % 2]
            assert turn(run, tool, args, result=result).allowed
        hears(runner, 1)
        for at in range(10, 19):
            tool, args, result = pair[at % 2]
            assert turn(run, tool, args, result=result).allowed
        hears(runner, 2)
        blocked = turn(run, *pair[1][:2], result=DONE)
        assert isinstance(blocked, Block)
        assert (blocked.detector, blocked.count) == ("ping_pong", 20)
    house.settle()
    said = house.verdicts(run_id)
    assert actions(said) == [("warn", "ping_pong", 10), *[("block", "ping_pong", 20)] * 2]
    assert said[0].paired_tool == said[1].paired_tool == "read"


def test_a_tool_that_does_not_exist_is_blocked_whatever_its_arguments(house: House) -> None:
    run_id, wrong = name(), "Tool Jira_Lookup not found"
    with house.runner("coder") as runner, runner.run(run_id) as run:
        for ticket in range(10):
            assert turn(run, "jira_lookup", {"ticket": ticket}, error=wrong).allowed
        hears(runner, 1)
        blocked = turn(run, "jira_lookup", {"ticket": 999}, error=wrong)
        assert isinstance(blocked, Block)
        assert (blocked.detector, blocked.count) == ("unknown_tool_repeat", 10)
        assert turn(run, "jira_search", {"ticket": 999}, error=wrong).allowed
    house.settle()
    said = house.verdicts(run_id)
    assert actions(said)[:2] == [("block", "unknown_tool_repeat", 10)] * 2
    assert said[0].applies_to[0].tool == "jira_lookup"
    assert said[0].key == "unknown-tool:jira_lookup:jira_lookup"


def test_the_circuit_breaker_stops_a_poll_whose_detector_is_off(house: House) -> None:
    run_id = name()
    with house.runner("switched-off-poll") as runner, runner.run(run_id) as run:
        turns(run, 30, "process", POLL, result=RUNNING)
        hears(runner, 1)
        blocked = turn(run, "process", POLL)
        assert isinstance(blocked, Block)
        assert (blocked.detector, blocked.count) == ("global_circuit_breaker", 30)
    house.settle()
    assert actions(house.verdicts(run_id)) == [("block", "global_circuit_breaker", 30)] * 2


def test_a_warning_is_announced_at_once_and_then_each_further_ten(house: House) -> None:
    run_id = name()
    with house.runner("patient") as runner, runner.run(run_id) as run:
        for number in range(45):
            assert turn(run, "exec", LS, result=f"progress {number}").allowed
        sent(runner)
        house.settle()
        said = house.verdicts(run_id)
        assert actions(said) == [("warn", "generic_repeat", n) for n in (3, 10, 20, 30, 40)]
        hears(runner, 5)
    assert runner.counters["blocks"] == 0


def test_sends_count_as_equal_if_only_volatile_ids_differ(house: House) -> None:
    stuck, moving = name(), name()
    send = {"action": "send", "to": "+1", "text": "hello"}
    with house.runner("coder") as runner, runner.run(stuck) as one, runner.run(moving) as other:
        for number in range(20):
            receipt = {"messageId": f"m{number}", "deliveredAt": number, "ok": True}
            turn(one, "message", send, result={"content": [], "details": receipt})
            turn(other, "message", send, result={"details": receipt | {"queue": number}})
        sent(runner)
        house.settle()
        hears(runner, 3)
        assert isinstance(turn(one, "message", send), Block)
        assert turn(other, "message", send, result={}).allowed
    assert actions(house.verdicts(stuck))[:2] == [
        ("warn", "generic_repeat", 10),
        ("block", "generic_repeat", 20),
    ]
    house.settle()
    assert {verdict.action for verdict in house.verdicts(moving)} == {"warn"}


def test_a_block_is_lifted_when_the_result_changes(house: House) -> None:
    run_id = name()
    with house.runner("coder") as runner, runner.run(run_id) as run:
        turns(run, 19)
        # Two calls at once: the second goes out before the first one's outcome is known.
        last, late = run.before_call("exec", LS), run.before_call("exec", LS)
        run.after_call(last, result=DONE)
        sent(runner)
        house.settle()
        hears(runner, len(house.verdicts(run_id)))
        assert isinstance(run.before_call("exec", LS), Block)
        run.after_call(late, result="something else")
        sent(runner)
        house.settle()
        said = actions(house.verdicts(run_id))
        assert said[-1] == ("release", "generic_repeat", 20)
        hears(runner, len(said))
        assert turn(run, "exec", LS, result=DONE).allowed
