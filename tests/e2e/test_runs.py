"""Whose history counts, which settings hold for whom, and what a runner is told when."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loopstream.cli import run as command
from loopstream.sdk import Allow, AsyncRunner, Block, RunAborted, Warn
from loopstream.wire.routing import scope_key
from tests.e2e.house import PATIENCE_S, Fields, House, actions
from tests.e2e.play import DONE, LS, hears, name, sent, turn, turns

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]

BLOCKS = {
    "tools": {"loopDetection": {"enabled": True}},
    "agents": {
        "list": [
            {
                "id": "hasty",
                "tools": {"loopDetection": {"warningThreshold": 3, "criticalThreshold": 6}},
            },
            {"id": "unjudged", "tools": {"loopDetection": {"enabled": None}}},
            {"id": "unguarded", "tools": {"loopDetection": {"enabled": False}}},
        ]
    },
}
ABORT = ("abort", "compaction_loop_persisted", 3)


# -- settings ---------------------------------------------------------------------------------


def test_an_agent_has_its_own_thresholds(house: House) -> None:
    hasty, other = name(), name()
    with house.runner("hasty") as first, first.run(hasty) as run:
        turns(run, 4)
        hears(first, 1)
        warned = turn(run, "exec", LS, result=DONE)
        assert isinstance(warned, Warn)
        assert warned.count == 3
        turns(run, 1)
        hears(first, 2)
        blocked = turn(run, "exec", LS)
        assert isinstance(blocked, Block)
        assert blocked.count == 6
    with house.runner("coder") as second, second.run(other) as run:
        turns(run, 9)
    house.settle()
    assert actions(house.verdicts(hasty))[:2] == [
        ("warn", "generic_repeat", 3),
        ("block", "generic_repeat", 6),
    ]
    assert house.verdicts(other) == []
    assert {verdict.agent for verdict in house.verdicts(hasty)} == {"hasty"}


def test_the_guard_ends_a_loop_that_survives_compaction(house: House) -> None:
    run_id = name()
    with house.runner("coder") as runner, runner.run(run_id) as run:
        turns(run, 2)
        run.compacted(retried=True)
        turns(run, 3)
        hears(runner, 1)
        with pytest.raises(RunAborted) as aborted:
            run.before_call("read", {"path": "quite another call"})
        assert (aborted.value.detector, aborted.value.count) == (ABORT[1], 3)
        assert aborted.value.tool == "exec"
        with pytest.raises(RunAborted):
            run.before_call("exec", LS)
    house.settle()
    assert actions(house.verdicts(run_id)) == [ABORT]


def test_only_a_retried_compaction_without_a_new_result_is_a_loop(house: House) -> None:
    by_hand, moving = name(), name()
    with house.runner("coder") as runner, runner.run(by_hand) as one, runner.run(moving) as other:
        one.compacted(retried=False)
        one.compacted(retried=True, succeeded=False)
        turns(one, 4)
        other.compacted(retried=True)
        turns(other, 2)
        turns(other, 1, result="news")
        turns(other, 3)
    house.settle()
    assert house.verdicts(by_hand) == house.verdicts(moving) == []


def test_the_guard_is_on_where_detection_is_not_enabled(house: House) -> None:
    run_id = name()
    with house.runner("unjudged") as runner, runner.run(run_id) as run:
        turns(run, 40)
        run.compacted(retried=True)
        turns(run, 3)
        hears(runner, 1)
        with pytest.raises(RunAborted):
            run.before_call("exec", LS)
    house.settle()
    assert actions(house.verdicts(run_id)) == [ABORT]


def test_nothing_is_said_where_detection_is_switched_off(house: House) -> None:
    run_id = name()
    with house.runner("unguarded") as runner, runner.run(run_id) as run:
        turns(run, 20)
        run.compacted(retried=True)
        turns(run, 20)
    house.settle()
    assert house.verdicts(run_id) == []


# -- scope ------------------------------------------------------------------------------------


def test_runs_of_a_session_do_not_disturb_each_other(house: House) -> None:
    session, one, two = name(), name(), name()
    with (
        house.runner("coder", session=session) as runner,
        runner.run(one) as first,
        runner.run(two) as second,
        runner.run("  ") as nameless,
    ):
        assert nameless.id is not None
        for number in range(15):
            turns(first, 1)
            turns(second, 1)
            turns(nameless, 1)
            turn(second, "read", {"line": number}, result=number)
    house.settle()
    for said in (house.verdicts(one), house.verdicts(two), house.verdicts(None, session)):
        assert actions(said) == [("warn", "generic_repeat", 10)]
        assert {verdict.session for verdict in said} == {session}


def test_all_blank_run_ids_are_the_one_nameless_run_of_the_session(house: House) -> None:
    session = name()
    spellings: list[Fields] = [{}, {"run": None}, {"run": ""}, {"run": " \t\ufeff"}]
    for number in range(20):
        event: Fields = {
            "v": 1,
            "time": number,
            "session": session,
            "agent": "coder",
            "tool": "exec",
        }
        event |= {"args": json.dumps(LS), **spellings[number % 4]}
        house.send_json(
            event | {"type": "tool_call"},
            event | {"type": "tool_outcome", "result": json.dumps(DONE)},
        )
    house.settle()
    said = house.verdicts(None, session)
    assert actions(said)[-1] == ("block", "generic_repeat", 20)
    assert {verdict.scope for verdict in said} == {scope_key(None, session)}
    assert {verdict.run for verdict in said} == {None}


def test_a_run_id_is_trimmed(house: House) -> None:
    run_id = name()
    event = {"v": 1, "time": 0, "agent": "hasty", "tool": "exec", "args": "{}"}
    for number in range(6):
        spelled = {"run": run_id if number % 2 else f"\u00a0{run_id} "}
        house.send_json(event | spelled | {"type": "tool_outcome", "result": "1"})
    house.settle()
    assert actions(house.verdicts(run_id)) == [("block", "generic_repeat", 6)]


# -- what a runner is told --------------------------------------------------------------------


def test_a_strict_gate_answers_each_call(house: House) -> None:
    run_id = name()
    with house.runner("hasty", wait=30) as runner, runner.run(run_id) as run:
        heard = []
        for _ in range(7):
            decision = run.before_call("exec", LS)
            heard.append(type(decision))
            if decision.allowed:
                run.after_call(decision, result=DONE)
        assert heard == [Allow, Allow, Allow, Warn, Allow, Allow, Block]
        assert runner.counters["gate_timeouts"] == 0
    house.settle()
    said = house.verdicts(run_id)
    answers = [verdict for verdict in said if verdict.action == "answer"]
    assert [str(answer.level) for answer in answers[:6]] == ["none"] * 3 + ["warning"] + [
        "none"
    ] * 2
    assert ("block", "generic_repeat", 6) in actions(said)


def test_a_gate_that_knows_no_block_is_refused_by_the_answer(house: House) -> None:
    run_id = name()
    event = {"v": 1, "time": 0, "run": run_id, "agent": "hasty", "tool": "exec", "args": "{}"}
    done = event | {"type": "tool_outcome", "result": "1"}
    call = event | {"type": "tool_call", "disposition": "gated"}
    house.send_json(*[done] * 6, call | {"id": "asked", "call_id": "c7"}, call | {"id": "again"})
    house.settle()
    block, *answers = house.verdicts(run_id)
    assert actions([block]) == [("block", "generic_repeat", 6)]
    # The first call did not enter the history: it does not count against the second.
    assert actions(answers) == [("answer", "generic_repeat", 6)] * 2
    assert [(str(a.level), a.evidence.event, a.call_id) for a in answers] == [
        ("critical", "asked", "c7"),
        ("critical", "again", None),
    ]


def test_refused_calls_are_judged_and_do_not_count(house: House) -> None:
    run_id = name()
    with house.runner("hasty") as runner, runner.run(run_id) as run:
        turns(run, 6)
        hears(runner, 2)
        refused = [turn(run, "exec", LS) for _ in range(10)]
        sent(runner)
        house.settle()
    assert all(isinstance(decision, Block) for decision in refused)
    said = house.verdicts(run_id)[2:]
    assert actions(said) == [("block", "generic_repeat", 6)] * 10
    assert [verdict.evidence.event for verdict in said] == [d.call.event for d in refused]


def test_a_runner_that_takes_a_run_up_again_hears_what_stands_against_it(house: House) -> None:
    blocked, aborted = name(), name()
    first = house.runner("hasty", runner="first")
    with first:
        one, other = first.run(blocked), first.run(aborted)
        turns(one, 6)
        other.compacted(retried=True)
        turns(other, 3)
        hears(first, 3)
    with house.runner("hasty", runner="second") as second:
        one, other = second.run(blocked, resumed=True), second.run(aborted, resumed=True)
        hears(second, 2)
        again = one.before_call("exec", LS)
        assert isinstance(again, Block)
        assert (again.detector, again.count) == ("generic_repeat", 6)
        with pytest.raises(RunAborted):
            other.before_call("read", {})


def test_a_run_that_goes_on_without_saying_so_keeps_its_history(house: House) -> None:
    run_id = name()
    for _ in range(2):
        with house.runner("hasty", runner="same") as runner:
            turns(runner.run(run_id), 3)
    house.settle()
    assert actions(house.verdicts(run_id)) == [
        ("warn", "generic_repeat", 3),
        ("block", "generic_repeat", 6),
    ]


def test_a_run_that_had_ended_begins_anew(house: House) -> None:
    run_id = name()
    for _ in range(2):
        with house.runner("hasty") as runner, runner.run(run_id) as run:
            turns(run, 6)
            hears(runner, 2)
            assert isinstance(turn(run, "exec", LS), Block)
    house.settle()
    said = [("warn", "generic_repeat", 3), *[("block", "generic_repeat", 6)] * 2]
    assert actions(house.verdicts(run_id)) == said * 2


def test_a_gate_that_nobody_answers_falls_open_unless_told_otherwise(
    bootstrap: str, prefix: str, tmp_path: Path
) -> None:
    idle = House(bootstrap, prefix, tmp_path)
    try:
        for fail, decided in (("open", Allow), ("closed", Block)):
            with idle.runner(wait=0.1, fail=fail) as runner, runner.run(name()) as run:
                assert runner.wait_ready(PATIENCE_S)
                decision = run.before_call("exec", LS)
                assert isinstance(decision, decided)
                assert runner.counters["gate_timeouts"] == 1
    finally:
        idle.close()


def test_digests_under_a_key_are_as_good_as_plain_ones(house: House) -> None:
    runs = {key: name() for key in (b"a" * 32, b"b" * 32)}
    for key, run_id in runs.items():
        with house.runner("hasty", key=key) as runner, runner.run(run_id) as run:
            turns(run, 6)
            hears(runner, 2)
            assert isinstance(turn(run, "exec", LS), Block)
            assert turn(run, "exec", {"command": "pwd"}, result=DONE).allowed
    house.settle()
    targets = {house.verdicts(run_id)[1].applies_to for run_id in runs.values()}
    assert len(targets) == 2


async def test_the_asyncio_runner_obeys_as_well(house: House) -> None:
    run_id = name()
    async with (
        AsyncRunner(house.bootstrap, agent="hasty", prefix=house.prefix) as runner,
        runner.run(run_id) as run,
    ):
        heard = []
        for _ in range(7):
            decision = await run.before_call("exec", LS, wait=30)
            heard.append(type(decision))
            if decision.allowed:
                await run.after_call(decision, result=DONE)
    assert heard == [Allow, Allow, Allow, Warn, Allow, Allow, Block]


# -- the record -------------------------------------------------------------------------------


def test_runs_show_tells_why_a_run_was_stopped(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    run_id = name()
    with house.runner("hasty") as runner:
        run = runner.run(run_id)
        turns(run, 6)
        hears(runner, 2)
        turn(run, "exec", LS)
        sent(runner)
        house.settle()
        arguments = ["--bootstrap", house.bootstrap, "--prefix", house.prefix, "-o", "json"]
        assert command(["runs", "show", run_id, *arguments]) == 0
    (shown,) = json.loads(capsys.readouterr().out)
    assert (shown["status"], shown["detector"], shown["count"]) == ("blocked", "generic_repeat", 6)
    assert (shown["calls"], shown["outcomes"], shown["refused"]) == (7, 6, 1)
    assert [block["count"] for block in shown["standing"]] == [6]
