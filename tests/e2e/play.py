"""Agents that loop, through the SDK."""

from __future__ import annotations

import uuid
from typing import Any, Final

from loopstream.sdk import Decision, Run, Runner
from tests.e2e.house import wait_for

LS: Final = {"command": "ls"}
DONE: Final = {
    "content": [{"type": "text", "text": "a.py"}],
    "details": {"status": "completed", "exitCode": 0, "aggregated": "a.py"},
}
POLL: Final = {"action": "poll", "sessionId": "build"}
RUNNING: Final = {"content": [], "details": {"status": "running", "aggregated": "…"}}


def name() -> str:
    """A run id that nothing else has."""
    return f"run-{uuid.uuid4()}"


def turn(run: Run, tool: str, args: object, **outcome: Any) -> Decision:
    """One call with what comes of it, unless it is refused."""
    decision = run.before_call(tool, args)
    if decision.allowed:
        run.after_call(decision, **outcome)
    return decision


def turns(run: Run, times: int, tool: str = "exec", args: object = LS, **outcome: Any) -> None:
    """The same call with the same outcome, again and again; none of them is refused."""
    for _ in range(times):
        assert turn(run, tool, args, **(outcome or {"result": DONE})).allowed


def hears(runner: Runner, count: int) -> None:
    """Wait until a runner has heard so many verdicts on its runs."""
    wait_for(
        f"the runner hears {count} verdicts: {runner.counters}",
        lambda: runner.counters["verdicts_received"] >= count,
    )


def sent(runner: Runner) -> None:
    """Wait until Kafka has all that a runner said."""
    wait_for("all is sent", lambda: runner.counters["events_pending"] == 0)
