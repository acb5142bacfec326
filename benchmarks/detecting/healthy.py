"""Healthy work that looks like a loop: no detector may stop it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

Event = dict[str, Any]


class Healthy(NamedTuple):
    """A run that gets somewhere; ``limit`` is what may be said at most."""

    name: str
    limit: str
    events: list[Event]


def look_alikes(each: int, seed: int = 1) -> Iterator[Healthy]:
    """So many of each kind, drawn with a seed."""
    rng = random.Random(seed)
    for kind, (limit, make) in KINDS.items():
        for number in range(each):
            yield Healthy(f"{kind}-{number}", limit, list(make(rng)))


def step(tool: str, args: Any, result: Any, dt: float = 3, **more: Any) -> Iterator[Event]:
    """One call with its result."""
    yield {"op": "call", "run": "r", "tool": tool, "args": args, "dt": dt, **more}
    yield {"op": "outcome", "run": "r", "tool": tool, "args": args, "result": result, **more}


def fails(tool: str, args: Any, error: str, dt: float = 3) -> Iterator[Event]:
    """One call with an error."""
    yield {"op": "call", "run": "r", "tool": tool, "args": args, "dt": dt}
    yield {"op": "outcome", "run": "r", "tool": tool, "args": args, "error": error}


def _poll_with_progress(rng: random.Random) -> Iterator[Event]:
    total = rng.randint(20, 60)
    for done in range(1, total):
        if rng.random() < 0.3:
            yield from step("exec", {"command": "sleep 10"}, "", 10)
        shown = rng.choice([f"{done}/{total} done", f"{done * 100 // total}%"])
        yield from step("read_output", {"handle": "build-1"}, shown, 10)


def _poll_bytes(rng: random.Random) -> Iterator[Event]:
    for done in range(1, rng.randint(15, 40)):
        text = f"downloaded {done * 1048576} of 99999999 bytes"
        yield from step("process", {"action": "poll", "sessionId": "d1"}, text, 5)


def _slow_quiet_poll(rng: random.Random) -> Iterator[Event]:
    details = {"details": {"status": "running", "aggregated": "building"}}
    for _ in range(rng.randint(8, 40)):
        args = {"action": "poll", "sessionId": "b1"}
        yield from step("process", args, details, rng.choice([60, 120, 300]))


def _edit_test(rng: random.Random) -> Iterator[Event]:
    left = rng.randint(6, 20)
    for lap in range(rng.randint(10, 30)):
        path = f"src/{rng.choice('abc')}.py"
        args = {"path": path, "old": f"x{lap}", "new": f"x{lap + 1}"}
        yield from step("edit", args, "ok", 20)
        left = max(0, left - (rng.random() < 0.4))
        yield from step("bash", {"command": "pytest -q"}, f"{40 - left} passed, {left} failed", 20)


def _edit_test_same_failure(rng: random.Random) -> Iterator[Event]:
    for lap in range(rng.randint(5, 15)):
        args = {"file_path": "a.py", "old_string": f"x{lap}", "new_string": f"y{lap}"}
        yield from step("Edit", args, "ok", 20)
        details = {"status": "failed", "exitCode": 1, "aggregated": "1 failing: adds numbers"}
        yield from step("exec", {"command": "npm test"}, {"details": details}, 20)


def _pagination(rng: random.Random) -> Iterator[Event]:
    size = rng.choice([10, 50, 100])
    for page in range(rng.randint(15, 60)):
        text = f"rows {page * size} to {page * size + size - 1}"
        if rng.random() < 0.5:
            yield from step("list_orders", {"cursor": f"p{page}", "limit": size}, text)
        else:
            yield from step("next_page", {}, f"page {page}: {text}")


def _batch_moves(rng: random.Random) -> Iterator[Event]:
    how = rng.choice(["exec", "tool", "ids"])
    for item in range(rng.randint(20, 60)):
        if how == "exec":
            command = f"mv inbox/file_{item}.txt archive/"
            yield from step("exec", {"command": command}, "")
        elif how == "tool":
            args = {"source": f"inbox/{item}.eml", "destination": f"archive/{item}.eml"}
            yield from step("move_file", args, "moved")
        else:
            identity = f"{rng.getrandbits(64):016x}"
            yield from step("archive_message", {"id": identity, "folder": "done"}, {"ok": True})


def _sweep(rng: random.Random) -> Iterator[Event]:
    for item in range(rng.randint(15, 50)):
        path = f"src/pkg{item % 4}/file_{item}.json"
        if rng.random() < 0.8:
            yield from step("exec", {"command": f"jq . {path}"}, "valid")
        else:
            yield from step("read_file", {"path": path}, "{}")


def _explore(rng: random.Random) -> Iterator[Event]:
    for item in range(rng.randint(20, 50)):
        name = f"handler_{item}"
        yield from step("grep", {"pattern": name}, f"src/f{item}.ts:{item}: {name}")
        if rng.random() < 0.5:
            yield from step("read", {"path": f"src/f{item}.ts"}, f"export const {name} = {item}")


def _date_picker(rng: random.Random) -> Iterator[Event]:
    for month in range(rng.randint(8, 24)):
        yield from step("click", {"role": "button", "name": "Next month"}, "ok")
        yield from step(
            "snapshot", {}, f"calendar: month {month % 12 + 1}, year {2026 + month // 12}"
        )


def _status_between(rng: random.Random) -> Iterator[Event]:
    for lap in range(rng.randint(10, 25)):
        files = "\n".join(f" M f{n}.py" for n in range(lap + 1))
        yield from step("exec", {"command": "git status --short"}, files)
        for part in range(rng.randint(1, 4)):
            args = {"path": f"f{lap}.py", "old": f"a{lap}.{part}", "new": f"b{lap}.{part}"}
            yield from step("edit", args, "ok")


def _parallel_sweep(rng: random.Random) -> Iterator[Event]:
    for lap in range(rng.randint(2, 5)):
        calls = [
            {"op": "call", "run": "r", "tool": "get-model", "args": {"name": f"m{lap}-{n}"},
             "batch": f"b{lap}", "call_id": f"c{lap}-{n}"}
            for n in range(rng.randint(5, 12))
        ]  # fmt: skip
        yield from calls
        for call in calls:
            yield {**call, "op": "outcome", "error": "Model not found"}


def _flaky(rng: random.Random) -> Iterator[Event]:
    for item in range(rng.randint(8, 20)):
        for _ in range(rng.randint(0, 3)):
            yield from fails("http_get", {"url": f"https://h.example/i/{item}"}, "503 unavailable")
        yield from step("http_get", {"url": f"https://h.example/i/{item}"}, f"item {item}")


def _progress_messages(rng: random.Random) -> Iterator[Event]:
    total = rng.randint(4, 9)
    for item in range(total):
        yield from step("convert_file", {"path": f"in/{item}.doc"}, f"out/{item}.pdf written")
        args = {"action": "send", "to": f"chat:{item}", "text": f"Your file {item} is ready."}
        yield from step("message", args, {"details": {"messageId": f"om_{item}"}})


KINDS: Final[dict[str, tuple[str, Callable[[random.Random], Iterator[Event]]]]] = {
    "poll-with-progress": ("none", _poll_with_progress),
    "poll-bytes": ("none", _poll_bytes),
    "slow-quiet-poll": ("warn", _slow_quiet_poll),
    "edit-test": ("none", _edit_test),
    "edit-test-same-failure": ("none", _edit_test_same_failure),
    "pagination": ("none", _pagination),
    "batch-moves": ("none", _batch_moves),
    "sweep": ("none", _sweep),
    "explore": ("none", _explore),
    "date-picker": ("none", _date_picker),
    "status-between-edits": ("none", _status_between),
    "parallel-sweep": ("none", _parallel_sweep),
    "flaky-service": ("none", _flaky),
    "messages-to-many": ("none", _progress_messages),
}
