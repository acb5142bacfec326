# ruff: noqa: ARG005, E501 - one line a scenario, and each lap may look at its number
"""Small loops and look-alikes of many kinds, none of them from the shared file."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Event = dict[str, Any]


def step(
    tool: str, args: Any, result: Any = None, *, error: str | None = None, dt: float = 1
) -> list[Event]:
    call = {"op": "call", "run": "r", "tool": tool, "args": args, "dt": dt}
    outcome = {"op": "outcome", "run": "r", "tool": tool, "args": args}
    if result is not None:
        outcome["result"] = result
    if error is not None:
        outcome["error"] = error
    return [call, outcome]


def laps(count: int, make: Callable[[int], list[Event]]) -> list[Event]:
    return [event for lap in range(1, count + 1) for event in make(lap)]


def compaction(reason: str) -> Event:
    return {"op": "compaction", "run": "r", "reason": reason}


def _todos(done: int) -> dict[str, Any]:
    return {"todos": [{"content": f"x{n}", "done": n < done} for n in range(30)]}


LOOPS: dict[str, tuple[str, list[Event]]] = {
    "noise-in-json-text": ("block", laps(12, lambda i: step(
        "mcp__x__list", {"q": "a"}, json.dumps({"requestId": f"r-{i}", "ts": 1_700_000_000 + i})))),
    "cosmetic-description": ("block", laps(40, lambda i: step(
        "Bash", {"command": "npm run build", "description": f"Build it, variant {i}"}, "TS2304 at a"))),
    "durations": ("block", laps(12, lambda i: step("search", {"q": "x"}, f"3 hits (0.{i} seconds)"))),
    "json-text-arguments": ("block", laps(12, lambda i: step(
        "read", json.dumps({"path": "a", "n": 1}) if i % 2 else {"n": 1, "path": "a"}, "text"))),
    "reworded-queries": ("warn", laps(12, lambda i: step(
        "web_search", {"query": f"{['git list', 'list of git', 'gits'][i % 3]} {i}"}, "No results"))),
    "spellings-of-a-path": ("warn", laps(30, lambda i: step(
        "read", {"path": ["a.py", "./a.py", "/w/a.py", "src/../a.py"][i % 4]}, "def main()"))),
    "noisy-cycle": ("block", laps(60, lambda i: step("read", {"path": f"n{i}"}, f"noise {i}")
        if i % 9 == 0 else step("abc"[i % 3], {"x": 1}, f"same {i % 3}"))),
    "two-errors-in-turns": ("block", laps(20, lambda i: step(
        "exec", {"command": "make"}, error=["Error A", "Error B"][i % 2]))),
    "made-up-tools": ("abort", laps(20, lambda i: step(
        f"tool_{i}", {"q": i}, error=f"Unknown tool: tool_{i}"))),
    "invalid-arguments": ("block", laps(20, lambda i: step(
        "create_issue", {"x": i}, error=f"Invalid arguments: 'x' must be text, got {i}"))),
    "permission": ("block", laps(15, lambda i: step("exec", {"command": f"cat /etc/f{i}"}, {
        "details": {"status": "failed", "exitCode": 1, "aggregated": f"f{i}: Permission denied"}}))),
    "thrashing": ("abort", laps(12, lambda i: [compaction("auto"), *step("read", {"path": "b"}, "b")])),
    "two-messages-in-turns": ("block", laps(20, lambda i: step(
        "__message__", {"text": ["I will fix it.", "Let me check."][i % 2]}, ""))),
    "one-message": ("block", laps(10, lambda i: step("__message__", {"text": "Let me check."}))),
    "slow-but-endless": ("block", laps(40, lambda i: step("exec", {"command": "sh job"}, "skip", dt=300))),
    "stuck-beside-something-that-moves": ("warn", laps(12, lambda i: [
        *step("bash", {"command": "cargo test"}, "FAILED same"), *step("uptime", {}, f"load {i}")])),
}  # fmt: skip

HEALTHY: dict[str, list[Event]] = {
    "batch-by-id": laps(40, lambda i: step("gmail_archive", {"message_id": f"18c{i:013x}"}, "ok")),
    "todos": laps(25, lambda i: step("TodoWrite", _todos(i), "Todos have been modified")),
    "thinking": laps(20, lambda i: step("think", {"thought": f"step {i}: option {i * 3}"}, "ok")),
    "scrolling": laps(15, lambda i: step("scroll", {"direction": "down"}, f"block {i}")),
    "many-files-written": laps(40, lambda i: step(
        "write_file", {"path": f"f{i}.py", "content": f"x={i}"}, "File written")),
    "many-files-checked": laps(30, lambda i: step(
        "exec", {"command": f"ruff check pkg/f{i}.py"}, "All checks passed!")),
    "sleep-and-poll": laps(20, lambda i: [
        *step("bash", {"command": "sleep 30"}, "", dt=30),
        *step("bash", {"command": "gh run view 7"}, f"step {i} of 30", dt=1)]),
    "inserts": laps(40, lambda i: step("sql", {"query": f"INSERT INTO t VALUES ({i})"}, "1 row")),
    "posts": laps(30, lambda i: step(
        "http_request", {"method": "POST", "url": "https://a.example/x", "n": i}, "201 Created")),
    "clicks": laps(30, lambda i: step("browser_click", {"ref": f"e{i}"}, "ok")),
    "same-status-of-each": laps(30, lambda i: step("get_order", {"order_id": f"o{i}"}, "shipped")),
    "edited-each-time": laps(15, lambda i: [
        *step("edit", {"path": "a.py", "new": f"v{i}"}, "ok"),
        *step("bash", {"command": "pytest -q"}, "1 failed")]),
}  # fmt: skip
