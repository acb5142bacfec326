"""What the agents of the demo do: some work, some are stuck in each way that can be detected."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Turn:
    """One thing that an agent does: a tool call with what comes of it, or a compaction."""

    tool: str = ""
    args: dict[str, Any] | None = None
    result: object = None
    error: str | None = None
    compaction: bool = False


@dataclass(frozen=True, slots=True)
class Script:
    """An agent: its turns, and whether it is stuck in a loop."""

    agent: str
    about: str
    loops: bool
    turns: Callable[[], Iterator[Turn]]


COMPACT: Final = Turn(compaction=True)
# Loops would go on for ever; if nobody stops them, the demo has failed.
_PATIENCE: Final = 40
_WORK: Final = 24


def _text(text: str, **details: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "details": details}


def _research() -> Iterator[Turn]:
    for page in range(_WORK):
        args = {"query": "kafka consumer lag", "page": page}
        yield Turn("web_search", args, _text(f"ten more results, from {page * 10}"))


def _edit_and_test() -> Iterator[Turn]:
    for step in range(_WORK // 3):
        args = {"path": "src/app.py", "line": step * 7}
        yield Turn("edit", args, _text(f"changed line {step * 7}"))
        failing = _WORK // 3 - step - 1
        output = f"{failing} failed, {30 - failing} passed"
        done = {"status": "completed", "exitCode": min(failing, 1), "aggregated": output}
        yield Turn("exec", {"command": f"pytest -k part{step}"}, _text(output, **done))
        yield Turn("read", {"path": f"src/part{step}.py"}, _text(f"source of part {step}"))


def _watch_build() -> Iterator[Turn]:
    for percent in range(_WORK):
        output = f"compiled {percent * 4} %"
        details = {"status": "running", "aggregated": output}
        yield Turn("process", {"action": "poll", "id": "build"}, _text(output, **details))


def _write_report() -> Iterator[Turn]:
    for chapter in range(_WORK):
        args = {"path": f"report/{chapter}.md", "content": f"chapter {chapter}"}
        yield Turn("write", args, _text("written"))


def _same_command() -> Iterator[Turn]:
    yield Turn("read", {"path": "deploy.log"}, _text("connection refused"))
    output = "ssh: connect to host db1: connection refused"
    details = {"status": "failed", "exitCode": 255, "aggregated": output}
    for _ in range(_PATIENCE):
        yield Turn("exec", {"command": "ssh db1 systemctl status"}, _text(output, **details))


def _dead_poll() -> Iterator[Turn]:
    details = {"status": "running", "aggregated": "waiting for lock"}
    for _ in range(_PATIENCE):
        yield Turn(
            "process", {"action": "poll", "id": "job7"}, _text("waiting for lock", **details)
        )


def _ping_pong() -> Iterator[Turn]:
    for _ in range(_PATIENCE // 2):
        yield Turn("read", {"path": "config.yml"}, _text("port: 80"))
        yield Turn("exec", {"command": "lint"}, _text("port must not be 80", status="done"))


def _missing_tool() -> Iterator[Turn]:
    for attempt in range(_PATIENCE):
        args = {"ticket": 4000 + attempt}
        yield Turn("jira_lookup", args, error="Unknown tool: jira_lookup")


def _compacted() -> Iterator[Turn]:
    for _ in range(6):
        yield Turn("list_files", {"path": "/data"}, _text("a.csv b.csv"))
    yield COMPACT
    for _ in range(_PATIENCE):
        yield Turn("list_files", {"path": "/data"}, _text("a.csv b.csv"))


SCRIPTS: Final = (
    Script("researcher", "turns pages of a search", loops=False, turns=_research),
    Script("coder", "edits, tests, reads: every turn is new", loops=False, turns=_edit_and_test),
    Script("builder", "polls a build that gets on", loops=False, turns=_watch_build),
    Script("writer", "writes one file after the other", loops=False, turns=_write_report),
    Script("deployer", "the same command, the same failure", loops=True, turns=_same_command),
    Script("waiter", "polls a job that is dead", loops=True, turns=_dead_poll),
    Script("linter", "two calls in turns, no progress", loops=True, turns=_ping_pong),
    Script("supporter", "a tool that does not exist", loops=True, turns=_missing_tool),
    Script("analyst", "the same loop again after compaction", loops=True, turns=_compacted),
)
