from typing import Any

import pytest

from loopstream.errors import SettingsError, UsageError
from loopstream.events import (
    Action,
    Compaction,
    Level,
    RunEnded,
    RunStarted,
    ToolCall,
    ToolOutcome,
)
from loopstream.fingerprint.canonical import MISSING
from loopstream.sdk import Allow, Block, RunAborted, Warn, blocked_result
from loopstream.sdk.gate import Gate
from loopstream.sdk.options import Options, key_name, new_runner_id
from loopstream.sdk.ports import Record
from loopstream.sdk.scribe import Spent
from loopstream.wire.limits import MAX_RAW_BYTES

from .fakes import PARTITIONS, Bench, about, on_signature, verdict

LS = {"command": "ls"}


def ask(session: Any, tool: str = "exec", args: object = None, **more: Any) -> Any:
    given = {"call_id": None, "batch": None, "wait": None, **more}
    return session.ask(tool, LS if args is None else args, **given)


def test_events_carry_who_and_where() -> None:
    bench = Bench(session="s")
    session = bench.begin(trace="t", parent_run="p", root_run="q", traceparent="00-x", resumed=True)
    ask(session, "bash", call_id="c-1", batch="b-1")
    started, call = bench.sent()
    assert isinstance(started, RunStarted)
    assert started.resumed
    assert isinstance(call, ToolCall)
    for seq, event in enumerate((started, call), 1):
        assert (event.run, event.agent, event.session, event.runner) == ("run-1", "a", "s", "r")
        assert (event.trace, event.parent_run, event.root_run) == ("t", "p", "q")
        assert (event.epoch, event.seq, event.id) == (1_000_000, seq, f"1000000-{seq}")
        assert (event.time, event.traceparent) == (1_000_000, "00-x")
    assert (call.tool, call.call_id, call.batch) == ("exec", "c-1", "b-1")
    assert call.disposition == "executed"
    assert call.args is None
    assert call.fp is not None


def test_the_epoch_rises_each_time_a_run_is_taken_up() -> None:
    bench = Bench()
    epochs = []
    for _ in range(3):
        session = bench.begin()
        bench.hub.finish(session, "completed", None)
        epochs.append(session.stream.epoch)
    assert epochs == [1_000_000, 1_000_001, 1_000_002]
    assert bench.hub.live == 0


def test_a_run_is_live_once() -> None:
    bench = Bench()
    bench.begin()
    with pytest.raises(UsageError, match="live"):
        bench.begin(" run-1 ")


def test_runs_without_an_id() -> None:
    bench = Bench()
    assert bench.begin(None).run != bench.begin(None).run
    scoped = bench.begin("  ", session="s")
    assert scoped.stream.scope == "\0s"
    assert bench.begin("", session=None).run


def test_long_ids_are_cut_to_fit_the_wire() -> None:
    bench = Bench(agent="a" * 500, session="s" * 500, runner="r" * 500)
    session = bench.begin("x" * 500)
    ask(session, "t" * 5000, call_id="c" * 5000, batch="b" * 500)
    started, call = bench.sent()
    assert isinstance(call, ToolCall)
    assert isinstance(started, RunStarted)
    assert started.run == session.run


def test_outcomes_belong_to_their_calls() -> None:
    bench = Bench()
    session = bench.begin()
    args = {"command": "ls"}
    decision = ask(session, args=args, call_id="c-1", batch="b-1")
    args["command"] = "changed by the tool"
    session.report(decision, result="files")
    session.report(decision.call, error=ValueError("boom"), executed=False)
    _, call, good, bad = bench.sent()
    assert isinstance(call, ToolCall)
    for outcome in (good, bad):
        assert isinstance(outcome, ToolOutcome)
        assert (outcome.tool, outcome.call_id, outcome.batch) == ("exec", "c-1", "b-1")
        assert call.fp is not None
        assert outcome.fp is not None
        assert call.fp.documented is not None
        assert outcome.fp.documented is not None
        assert outcome.fp.documented.args == call.fp.documented.args
    assert isinstance(good, ToolOutcome)
    assert isinstance(bad, ToolOutcome)
    assert (good.executed, bad.executed) == (True, False)
    assert bad.fp is not None
    assert bad.fp.documented is not None
    assert bad.fp.documented.failed


def test_a_block_refuses_until_it_is_released() -> None:
    bench = Bench()
    session = bench.begin()
    signature = ask(session).call.signature
    block = verdict(Action.BLOCK, applies_to=on_signature(signature))
    bench.hear(block)
    decision = ask(session)
    assert isinstance(decision, Block)
    assert not decision.allowed
    assert (decision.reason, decision.detector, decision.count) == (
        block.reason,
        "generic_repeat",
        20,
    )
    assert decision.verdict == block.id
    assert decision.result == blocked_result(block.reason)
    assert isinstance(ask(session, args={"command": "other"}), Allow)
    bench.hear(verdict(Action.RELEASE, applies_to=on_signature(signature)))
    assert isinstance(ask(session), Allow)
    dispositions = [e.disposition for e in bench.sent() if isinstance(e, ToolCall)]
    assert dispositions == ["executed", "refused", "executed", "executed"]
    assert bench.hub.counters.view()["blocks"] == 1


@pytest.mark.parametrize("profile", ["documented", "reference-2026-9"])
def test_vetoes_are_told_where_they_are_recorded(profile: str) -> None:
    bench = Bench(profiles=(profile,))
    session = bench.begin()
    bench.hear(verdict(Action.BLOCK, applies_to=on_signature(ask(session).call.signature)))
    decision = ask(session)
    # An agent that reports the result which it gave the model does not report it twice.
    session.report(decision, result=decision.result)
    outcomes = [event for event in bench.sent() if isinstance(event, ToolOutcome)]
    if profile == "documented":
        assert outcomes == []
        return
    (veto,) = outcomes
    assert not veto.executed
    assert veto.fp is not None
    assert veto.fp.reference is not None
    assert veto.fp.reference.kind == "tool-loop-veto"


def test_an_agent_that_ran_a_refused_call_says_so() -> None:
    bench = Bench()
    session = bench.begin()
    bench.hear(verdict(Action.BLOCK, applies_to=on_signature(ask(session).call.signature)))
    session.report(ask(session), result="it ran all the same")
    *_, outcome = bench.sent()
    assert isinstance(outcome, ToolOutcome)
    assert outcome.executed


def test_a_warning_comes_with_the_next_call_like_it() -> None:
    bench = Bench()
    session = bench.begin()
    first = ask(session)
    bench.hear(verdict(Action.WARN, evidence=about(first.call.event), count=10))
    assert isinstance(ask(session, args={}), Allow)
    decision = ask(session)
    assert isinstance(decision, Warn)
    assert decision.allowed
    assert decision.count == 10
    assert isinstance(ask(session), Allow)
    assert bench.hub.counters.view()["warns"] == 1


def test_an_abort_ends_the_run_for_good() -> None:
    bench = Bench()
    session, other = bench.begin(), bench.begin("run-2")
    abort = verdict(Action.ABORT, detector="compaction_loop_persisted", count=3)
    bench.hear(abort)
    for _ in range(2):
        with pytest.raises(RunAborted) as caught:
            ask(session)
    aborted = caught.value
    assert (aborted.run, aborted.detector, aborted.count) == (
        "run-1",
        "compaction_loop_persisted",
        3,
    )
    assert (aborted.tool, aborted.reason, aborted.verdict) == ("exec", abort.reason, abort.id)
    assert isinstance(ask(other), Allow)
    bench.hub.finish(session, "aborted", aborted.reason)
    assert isinstance(ask(bench.begin()), Allow)


@pytest.mark.parametrize(
    ("level", "mode", "kind"),
    [
        (Level.NONE, "enforce", Allow),
        (Level.WARNING, "enforce", Warn),
        (Level.CRITICAL, "enforce", Block),
        (Level.CRITICAL, "shadow", Allow),
        (Level.WARNING, "shadow", Allow),
    ],
)
def test_a_gate_is_lifted_by_its_answer(level: Level, mode: str, kind: type) -> None:
    bench = Bench(wait=60)
    session = bench.begin()
    gate = ask(session)
    assert isinstance(gate, Gate)
    bench.hear(
        verdict(Action.ANSWER, level=level, mode=mode, evidence=about("another call's")),
        verdict(Action.ANSWER, level=level, mode=mode, evidence=about(gate.call.event)),
    )
    gate.wait()
    assert isinstance(session.settle(gate), kind)
    (call,) = [event for event in bench.sent() if isinstance(event, ToolCall)]
    assert call.disposition == "gated"
    assert bench.hub.counters.view()["answers_late"] == 1


def test_a_gated_call_does_not_linger() -> None:
    bench = Bench(linger_ms=10_000)
    bench.hub.outbox.open(range(PARTITIONS))
    session = bench.begin()
    ask(session)
    bench.hub.outbox.open(range(PARTITIONS))
    assert bench.hub.outbox.take() == []
    ask(session, wait=60)
    (frame,) = bench.hub.outbox.take()
    assert frame.events == 3


def test_only_the_first_lift_counts() -> None:
    gate = ask(Bench().begin(), wait=60)
    answer = verdict(Action.ANSWER)
    lifts: list[int] = []
    gate.on_lift(lambda: lifts.append(1))
    gate.lift(answer)
    gate.lift(None)
    assert gate.answer is answer
    assert lifts == [1]


def test_a_warning_that_an_answer_gave_is_not_repeated() -> None:
    bench = Bench(wait=60)
    session = bench.begin()
    gate = ask(session)
    event = about(gate.call.event)
    bench.hear(
        verdict(Action.WARN, evidence=event),
        verdict(Action.ANSWER, level=Level.WARNING, evidence=event),
    )
    assert isinstance(session.settle(gate), Warn)
    assert isinstance(ask(session, wait=0), Allow)


def test_an_unanswered_gate_falls_open() -> None:
    bench = Bench()
    session = bench.begin()
    gate = ask(session, wait=0.001)
    gate.wait()
    decision = session.settle(gate)
    assert isinstance(decision, Allow)
    session.report(decision, result="ran")
    *_, outcome = bench.sent()
    assert isinstance(outcome, ToolOutcome)
    assert outcome.executed
    bench.hear(verdict(Action.ANSWER, evidence=about(gate.call.event)))
    counters = bench.hub.counters.view()
    assert (counters["gate_timeouts"], counters["answers_late"]) == (1, 1)


def test_an_unanswered_gate_falls_closed_where_that_is_wanted() -> None:
    bench = Bench(fail="closed")
    bench.hub.link.sending = bench.hub.link.reading = True
    session = bench.begin()
    gate = ask(session, wait=0.001)
    gate.wait()
    decision = session.settle(gate)
    assert isinstance(decision, Block)
    assert decision.verdict is None
    assert decision.result["details"]["deniedReason"] == "loopstream-unreachable"
    *_, outcome = bench.sent()
    assert isinstance(outcome, ToolOutcome)
    assert not outcome.executed


@pytest.mark.parametrize("fail", ["open", "closed"])
def test_an_unanswered_gate_still_minds_a_block(fail: str) -> None:
    bench = Bench(fail=fail)
    bench.hub.link.sending = bench.hub.link.reading = True
    session = bench.begin()
    gate = ask(session, wait=0.001)
    block = verdict(Action.BLOCK, applies_to=on_signature(gate.call.signature))
    bench.hear(block)
    gate.wait()
    decision = session.settle(gate)
    assert isinstance(decision, Block)
    assert decision.verdict == block.id


def test_an_abort_lifts_gates() -> None:
    bench = Bench()
    session = bench.begin()
    gate = ask(session, wait=60)
    bench.hear(verdict(Action.ABORT))
    gate.wait()
    with pytest.raises(RunAborted):
        session.settle(gate)


def test_the_end_lifts_gates() -> None:
    bench = Bench()
    session = bench.begin()
    gate = ask(session, wait=60)
    bench.hub.finish(session, "cancelled", None)
    gate.wait()
    assert isinstance(session.settle(gate), Allow)


def test_failing_closed_means_no_call_while_kafka_is_away() -> None:
    bench = Bench(fail="closed")
    session = bench.begin()
    assert isinstance(ask(session), Block)
    bench.hub.link.sending = bench.hub.link.reading = True
    assert isinstance(ask(session), Allow)
    bench.hub.link.reading = False
    decision = ask(session)
    assert isinstance(decision, Block)
    assert decision.detector is None


def test_the_end_is_told_once_and_silences_the_run() -> None:
    bench = Bench()
    session = bench.begin()
    bench.hub.finish(session, "failed", "x" * 1000)
    bench.hub.finish(session, "completed", None)
    decision = ask(session)
    session.report(decision, result="late")
    assert isinstance(decision, Allow)
    _, ended = bench.sent()
    assert isinstance(ended, RunEnded)
    assert ended.status == "failed"
    assert len(ended.reason or "") == 512
    assert bench.hub.counters.view()["calls_after_end"] == 1


def test_compactions_are_told() -> None:
    bench = Bench()
    bench.begin().compacted(
        succeeded=False, retried=True, reason="full", tokens_before=9, tokens_after=None
    )
    _, event = bench.sent()
    assert isinstance(event, Compaction)
    assert (event.succeeded, event.retried, event.reason) == (False, True, "full")
    assert (event.tokens_before, event.tokens_after) == (9, None)


class Spiteful(dict[str, object]):
    """Breaks whatever touches it."""

    def items(self) -> Any:
        raise RuntimeError("no")

    __iter__ = values = keys = items


@pytest.mark.parametrize("args", [Spiteful(a=1), object(), {1: {2: b"x"}}, MISSING, "\ud800"])
def test_whatever_the_arguments_the_agent_goes_on(args: object) -> None:
    bench = Bench(capture="full")
    session = bench.begin()
    decision = session.ask("exec", args, None, None, None)
    assert decision.allowed
    session.report(decision, result=args)
    session.report(decision, error=args)
    assert [event.type for event in bench.sent()].count("tool_outcome") == 2


@pytest.mark.parametrize(("fail", "allowed"), [("open", True), ("closed", False)])
def test_trouble_in_our_own_code_is_counted(
    fail: str, allowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(fail=fail)
    session = bench.begin()
    monkeypatch.setattr(session.stream, "pack", None)
    decision = ask(session)
    assert decision.allowed is allowed
    session.report(decision, result=1)
    session.compacted(
        succeeded=True, retried=True, reason=None, tokens_before=None, tokens_after=None
    )
    assert bench.hub.counters.view()["errors"] == 2
    assert len(bench.sent()) == 1


def test_oversize_arguments_are_flagged() -> None:
    bench = Bench(capture="full")
    session = bench.begin()
    decision = ask(session, args={"text": "x" * MAX_RAW_BYTES})
    session.report(decision, result="ok")
    _, call, outcome = bench.sent()
    assert isinstance(call, ToolCall)
    assert isinstance(outcome, ToolOutcome)
    assert call.oversize
    assert outcome.oversize
    assert call.args is None
    assert outcome.result == '"ok"'


def test_verdicts_that_are_not_ours_or_none_at_all() -> None:
    bench = Bench()
    bench.begin()
    bench.hear(verdict(Action.ABORT, scope="another run"))
    for value in (None, b"", b"{}", b"\xff" * 10, b"[" * 100):
        record = bench_record(value)
        bench.hub.deliver(record)
        bench.hub.deliver(record._replace(key=None))
        bench.hub.deliver(record._replace(key=b"\xff"))
    counters = bench.hub.counters.view()
    assert counters["verdicts_undecodable"] == 10
    assert counters["verdicts_received"] == 0


def bench_record(value: bytes | None) -> Any:
    return Record(0, 0, b"run-1", value)


def test_verdicts_are_counted_by_their_fate() -> None:
    bench = Bench()
    session = bench.begin()
    block = verdict(Action.BLOCK, applies_to=on_signature("x"))
    bench.hear(block, block, verdict(Action.ABORT, mode="shadow"))
    counters = bench.hub.counters.view()
    assert counters["verdicts_received"] == 3
    assert counters["verdicts_duplicate"] == 1
    assert counters["verdicts_shadow"] == 1
    assert counters["aborts"] == 0
    assert ask(session).allowed


@pytest.mark.parametrize(
    "wrong",
    [
        {"capture": "all"},
        {"fail": "maybe"},
        {"profiles": ()},
        {"profiles": ("documented", "x")},
        {"key": b"short"},
        {"key_id": "k"},
        {"linger_ms": -1},
        {"max_buffer_bytes": 10},
        {"max_buffer_events": 0},
        {"wait": -1},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError) as caught:
        Options(**wrong)
    assert caught.value.where in wrong


def test_keys_are_named_and_never_shown() -> None:
    key = b"0123456789abcdef"
    options = Options(key=key)
    assert "0123456789abcdef" not in repr(options)
    assert options.printer().key_id == key_name(key)
    assert Options(key=key, key_id="mine").printer().key_id == "mine"
    assert key_name(None) is None
    assert new_runner_id() != new_runner_id()


def _extended(event: object) -> Any:
    assert isinstance(event, ToolCall)
    assert event.fp is not None
    return event.fp.extended


def test_tokens_and_cost_are_told_to_the_profile_that_counts_them() -> None:
    bench = Bench(profiles=("extended",))
    session = bench.begin()
    ask(session, spent=Spent(1200, 0.0375))
    ask(session)
    told = [_extended(event) for event in bench.sent()[1:]]
    assert [(seen.tokens, seen.cost) for seen in told] == [(1200, 37_500), (None, None)]
    documented = Bench()
    session = documented.begin()
    assert ask(session, spent=Spent(1200, 0.0375)).allowed
    (_, call) = documented.sent()
    assert isinstance(call, ToolCall)


@pytest.mark.parametrize("spent", [Spent(-1), Spent(cost=float("nan")), Spent(cost=1e300)])
def test_nonsense_about_cost_loses_no_call(spent: Spent) -> None:
    bench = Bench(profiles=("extended",))
    session = bench.begin()
    assert ask(session, spent=spent).allowed
    (_, call) = bench.sent()
    assert (_extended(call).tokens, _extended(call).cost) == (None, None)
    assert bench.hub.counters.view()["errors"] == 1


def test_messages_are_told_to_the_profile_that_looks_at_them() -> None:
    bench = Bench(profiles=("extended",))
    session = bench.begin()
    decision = session.say("All tests pass now.", Spent(tokens=20))
    assert decision.allowed
    (_, call) = bench.sent()
    assert isinstance(call, ToolCall)
    assert call.tool == "__message__"
    assert call.args is None
    assert _extended(call).tokens == 20
    silent = Bench()
    session = silent.begin()
    assert session.say("All tests pass now.", Spent()).allowed
    assert len(silent.sent()) == 1


def test_a_message_said_too_often_is_blocked_and_an_aborted_run_says_nothing() -> None:
    bench = Bench(profiles=("extended",))
    session = bench.begin()
    call = session.say("Done.", Spent()).call
    session.receive(verdict(Action.BLOCK, applies_to=on_signature(call.signature)))
    assert isinstance(session.say("Done.", Spent()), Block)
    assert session.say("Not yet.", Spent()).allowed
    session.receive(verdict(Action.ABORT))
    with pytest.raises(RunAborted):
        session.say("Not yet.", Spent())
