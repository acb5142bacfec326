"""Random runs: few tools, arguments and results, so that loops, batches and vetoes do occur."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Event = dict[str, Any]

TOOLS = ("read", "edit", "exec", "mcp__s__a", "mcp__s__b", "message", "process", "__message__")
VETO = {"details": {"status": "blocked", "deniedReason": "tool-loop"}}
OUTCOMES: tuple[dict[str, Any], ...] = (
    {"result": "same"},
    {"result": "same"},
    {"result": "other"},
    {"result": "ok"},
    {"result": VETO},
    {"error": "connection refused"},
    {"error": "Unknown tool: nope"},
    {},
)


def _args(tool: str, number: int) -> dict[str, Any]:
    if tool == "message":
        return {"action": "send", "to": f"c{number % 2}", "text": f"hello there {number}"}
    if tool == "process":
        return {"action": "poll", "sessionId": number % 2}
    return {"path": f"f{number}", "limit": 100}


@st.composite
def laps(draw: st.DrawFn) -> list[Event]:
    """A few steps, repeated: what most of a stuck run looks like."""
    size = draw(st.integers(1, 4))
    steps = [
        (draw(st.sampled_from(TOOLS)), draw(st.integers(0, 3)), draw(st.sampled_from(OUTCOMES)))
        for _ in range(size)
    ]
    batched = draw(st.booleans())
    name = draw(st.integers(0, 10_000))
    events: list[Event] = []
    for lap in range(draw(st.integers(1, 14))):
        batch = f"b{name}-{lap}" if batched else None
        calls = [
            {"run": "r", "tool": tool, "args": _args(tool, number), "batch": batch,
             "call_id": f"{name}-{lap}-{at}", "dt": draw(st.sampled_from((1, 90)))}
            for at, (tool, number, _) in enumerate(steps)
        ]  # fmt: skip
        if batched:
            events += [{"op": "call", **call} for call in calls]
        for call, (_, _, outcome) in zip(calls, steps, strict=True):
            if not batched:
                events.append({"op": "call", **call})
            events.append({"op": "outcome", **call, **outcome})
    if draw(st.integers(0, 5)) == 0:
        events.append(
            {"op": "compaction", "run": "r", "reason": "overflow", "tokens_before": 100,
             "tokens_after": draw(st.sampled_from((10, 99)))}
        )  # fmt: skip
    return events


runs = st.lists(laps(), min_size=1, max_size=6).map(
    lambda parts: [e for part in parts for e in part]
)
