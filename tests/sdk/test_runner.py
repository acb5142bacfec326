import contextlib
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from loopstream.errors import SettingsError
from loopstream.events import Action, RunEnded, ToolCall, ToolOutcome
from loopstream.fingerprint.calls import fingerprint_call
from loopstream.sdk import AsyncRun, AsyncRunner, Run, RunAborted, Runner, ToolBlocked, Warn
from loopstream.sdk.tools import argument_reader

from .fakes import Bus, about, eventually, on, on_signature, verdict


@pytest.fixture
def bus() -> Bus:
    return Bus()


@pytest.fixture
def runner(bus: Bus) -> Iterator[Runner]:
    with on(bus, Runner)("bus:1", agent="a", linger_ms=0) as runner:
        yield runner


def outcomes(bus: Bus) -> list[ToolOutcome]:
    return [event for event in bus.events if isinstance(event, ToolOutcome)]


def digest_of_call(event: ToolCall) -> bytes | None:
    assert event.fp is not None
    return event.fp.documented.args if event.fp.documented else None


def test_the_usage_of_the_design(bus: Bus) -> None:
    with on(bus, Runner)("bus:1", agent="researcher") as runner, runner.run() as run:
        decision = run.before_call("exec", {"command": "ls"})
        assert decision.allowed
        run.after_call(decision.call, result="files")
        run.compacted(retried=True)
    assert [event.type for event in bus.events] == [
        "run_started",
        "tool_call",
        "tool_outcome",
        "compaction",
        "run_ended",
    ]
    assert {event.agent for event in bus.events} == {"researcher"}
    assert {event.runner for event in bus.events} == {runner.id}


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (None, "completed", None),
        (ValueError("secret"), "failed", "ValueError"),
        (KeyboardInterrupt(), "cancelled", "KeyboardInterrupt"),
        (RunAborted(verdict(Action.ABORT)), "aborted", "abort it"),
    ],
)
def test_a_run_ends_as_its_block_was_left(
    bus: Bus, runner: Runner, error: BaseException | None, status: str, reason: str | None
) -> None:
    with contextlib.suppress(BaseException), runner.run():
        fail_with(error)
    runner.close()
    *_, ended = bus.events
    assert isinstance(ended, RunEnded)
    assert (ended.status, ended.reason) == (status, reason)


def fail_with(error: BaseException | None) -> None:
    if error is not None:
        raise error


def test_a_run_can_be_ended_by_hand(bus: Bus, runner: Runner) -> None:
    run = runner.run()
    run.end("cancelled", "the user left")
    run.end()
    runner.close()
    assert [event.type for event in bus.events] == ["run_started", "run_ended"]
    assert runner.counters["runs_live"] == 0


def test_a_wrapped_tool_is_asked_about_and_reported(bus: Bus, runner: Runner) -> None:
    with runner.run() as run:

        @run.tool
        def search(query: str, limit: int = 5) -> str:
            """Search."""
            return f"{query} {limit}"

        assert search("cats", limit=2) == "cats 2"
        assert search.__doc__ == "Search."
    runner.close()
    (call,) = [event for event in bus.events if isinstance(event, ToolCall)]
    assert call.tool == "search"
    assert digest_of_call(call) == fingerprint_call("search", {"query": "cats", "limit": 2}).args
    (outcome,) = outcomes(bus)
    assert outcome.executed


def test_a_wrapped_tool_that_fails_is_reported_and_fails(bus: Bus, runner: Runner) -> None:
    with runner.run() as run:

        @run.tool(name="lookup")
        def search() -> str:
            raise LookupError("nothing")

        with pytest.raises(LookupError):
            search()
    runner.close()
    (outcome,) = outcomes(bus)
    assert outcome.tool == "lookup"
    assert outcome.fp is not None
    assert outcome.fp.documented is not None
    assert outcome.fp.documented.failed


def test_a_wrapped_tool_is_refused(bus: Bus, runner: Runner) -> None:
    ran = []
    with runner.run("run-1") as run:

        def search() -> str:
            ran.append(1)
            return "found"

        polite = run.tool(search)
        strict = run.tool(on_block="raise")(search)
        polite()
        signature = run.before_call("search", {}).call.signature
        eventually(lambda: bus.events)
        bus.publish(verdict(Action.BLOCK, scope="run-1", applies_to=on_signature(signature)))
        eventually(lambda: runner.counters["verdicts_received"])
        assert polite() == {
            "content": [{"type": "text", "text": "block it"}],
            "details": {"status": "blocked", "deniedReason": "tool-loop", "reason": "block it"},
        }
        with pytest.raises(ToolBlocked) as caught:
            strict()
        assert caught.value.decision.reason == "block it"
    assert len(ran) == 1


def test_a_wrapped_tool_passes_warnings_on(bus: Bus, runner: Runner) -> None:
    heard: list[Warn] = []
    with runner.run("run-1") as run:
        search = run.tool(name="search", on_warn=heard.append)(lambda: "found")
        event = run.before_call("search", {}).call.event
        eventually(lambda: bus.events)
        bus.publish(verdict(Action.WARN, scope="run-1", evidence=about(event)))
        eventually(lambda: runner.counters["verdicts_received"])
        assert search() == search() == "found"
    assert [warn.reason for warn in heard] == ["warn it"]


@pytest.mark.parametrize(
    ("args", "kwargs", "read"),
    [
        ((1,), {}, {"a": 1}),
        ((1, 2, 3), {"d": 4, "e": 5}, {"a": 1, "rest": (2, 3), "d": 4, "e": 5}),
        ((), {"a": 1}, {"a": 1}),
        ((), {"x": 1}, {"args": [], "x": 1}),
    ],
)
def test_arguments_are_read_by_name(
    args: tuple[int, ...], kwargs: dict[str, int], read: dict[str, Any]
) -> None:
    def tool(a: int, *rest: int, d: int = 0, **more: int) -> None: ...

    assert argument_reader(tool)(args, kwargs) == read


@pytest.mark.parametrize("bootstrap", ["", [], "a:1,,"])
def test_a_malformed_address_is_an_error_at_once(bootstrap: Any) -> None:
    with pytest.raises(SettingsError) as caught:
        Runner(bootstrap)
    assert caught.value.where == "bootstrap"


def test_counters_say_what_is_in_hand(bus: Bus) -> None:
    bus.up = False
    with on(bus, Runner)("bus:1") as runner:
        runner.run()
        counters = runner.counters
        assert (counters["events_pending"], counters["runs_live"]) == (1, 1)
        assert counters["bytes_pending"] > 0
        bus.up = True


@pytest.mark.parametrize(("sync", "twin"), [(Runner, AsyncRunner), (Run, AsyncRun)])
def test_the_twins_have_the_same_names(sync: type, twin: type) -> None:
    names = {name for name in dir(sync) if not name.startswith("_")}
    assert names == {name for name in dir(twin) if not name.startswith("_")}
    for name in names:
        ours, theirs = getattr(sync, name), getattr(twin, name)
        if inspect.isfunction(ours) and name != "tool":
            assert list(inspect.signature(ours).parameters) == list(
                inspect.signature(theirs).parameters
            )
