"""The tables of an export: their columns, and how records become rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from loopstream.events import Control, Event, Pin, ToolCall, ToolOutcome, Verdict
from loopstream.replay.opening import decoded
from loopstream.replay.records import Record
from loopstream.wire.routing import scope_key

Row = dict[str, Any]

_PLACE: Final = {
    "topic": "VARCHAR",
    "partition": "INTEGER",
    "offset": "BIGINT",
    "append_time": "BIGINT",
    "headers": "MAP(VARCHAR, VARCHAR)",
    "key": "VARCHAR",
}
_ENVELOPE: Final = {
    "id": "VARCHAR",
    "scope": "VARCHAR",
    "run": "VARCHAR",
    "agent": "VARCHAR",
    "session": "VARCHAR",
    "runner": "VARCHAR",
    "epoch": "BIGINT",
    "seq": "BIGINT",
    "time": "BIGINT",
    "batch": "VARCHAR",
    "trace": "VARCHAR",
    "parent_run": "VARCHAR",
    "root_run": "VARCHAR",
    "traceparent": "VARCHAR",
}
EVENT_COLUMNS: Final = {
    **_PLACE,
    "index": "INTEGER",
    "refused": "VARCHAR",
    "type": "VARCHAR",
    **_ENVELOPE,
    "tool": "VARCHAR",
    "call_id": "VARCHAR",
    "disposition": "VARCHAR",
    "executed": "BOOLEAN",
    "args_digest": "VARCHAR",
    "poll": "BOOLEAN",
    "result_digest": "VARCHAR",
    "failed": "BOOLEAN",
    "unknown_tool": "VARCHAR",
    "preview": "VARCHAR",
    "args": "VARCHAR",
    "result": "VARCHAR",
    "error": "VARCHAR",
    "oversize": "BOOLEAN",
    "succeeded": "BOOLEAN",
    "retried": "BOOLEAN",
    "resumed": "BOOLEAN",
    "status": "VARCHAR",
    "reason": "VARCHAR",
    "count": "BIGINT",
    "source": "VARCHAR",
    "source_offset": "BIGINT",
    "event": "JSON",
}
"""One row an event, also for those that were refused (``refused`` is the code)."""

VERDICT_COLUMNS: Final = {
    **_PLACE,
    "id": "VARCHAR",
    "seq": "BIGINT",
    "scope": "VARCHAR",
    "run": "VARCHAR",
    "agent": "VARCHAR",
    "session": "VARCHAR",
    "runner": "VARCHAR",
    "action": "VARCHAR",
    "level": "VARCHAR",
    "detector": "VARCHAR",
    "count": "BIGINT",
    "threshold": "BIGINT",
    "tool": "VARCHAR",
    "paired_tool": "VARCHAR",
    "call_id": "VARCHAR",
    "reason": "VARCHAR",
    "mode": "VARCHAR",
    "profile": "VARCHAR",
    "settings": "VARCHAR",
    "event_id": "VARCHAR",
    "event_partition": "INTEGER",
    "event_offset": "BIGINT",
    "event_time": "BIGINT",
    "judged_time": "BIGINT",
    "verdict": "JSON",
}
TIMES: Final = frozenset(("append_time", "time", "event_time", "judged_time"))
"""Milliseconds in rows, timestamps in the tables."""


def event_rows(record: Record, topic: str) -> Iterator[Row]:
    """The events of a record, and what was refused of it."""
    place = _place(record, topic)
    found = decoded(record)
    for index, event in zip(found.indexes, found.events, strict=True):
        yield place | {"index": index} | _event(event)
    for reject in found.rejects:
        yield place | {"index": reject.index, "refused": reject.code.value}


def verdict_row(verdict: Verdict, record: Record, topic: str) -> Row:
    """A verdict with its place on the topic."""
    fields = verdict.model_dump(mode="json", exclude_none=True, by_alias=True)
    told = {k: v for k, v in fields.items() if k in VERDICT_COLUMNS and k not in _PLACE}
    row = _place(record, topic) | told | {"judged_time": verdict.append_time}
    evidence = verdict.evidence
    row |= {"event_id": evidence.event, "event_partition": evidence.partition}
    return row | {"event_offset": evidence.offset, "verdict": fields}


def line_of(row: Row) -> str:
    """A row as DuckDB reads it."""
    return json.dumps(row) + "\n"


def _place(record: Record, topic: str) -> Row:
    return {
        "topic": topic,
        "partition": record.partition,
        "offset": record.offset,
        "append_time": record.timestamp,
        "headers": {name: value.decode("utf-8", "replace") for name, value in record.headers},
        "key": None if record.key is None else record.key.decode("utf-8", "replace"),
    }


def _event(event: Event) -> Row:
    fields = event.model_dump(mode="json", exclude_none=True)
    row = {k: v for k, v in fields.items() if k in EVENT_COLUMNS and k not in _PLACE}
    row["event"] = fields
    if isinstance(event, Control):
        return row | {"source_offset": event.offset}
    if isinstance(event, Pin):
        return row
    row["scope"] = scope_key(event.run, event.session)
    if isinstance(event, ToolCall | ToolOutcome) and event.fp is not None:
        digests = event.fp.documented or event.fp.reference
        if digests is not None:
            told = digests.model_dump(mode="json", exclude_none=True)
            row |= {"args_digest": told["args"], "poll": told["poll"]}
            names = {"result": "result_digest", "failed": "failed", "unknown_tool": "unknown_tool"}
            row |= {names[name]: told[name] for name in names if name in told}
    return row
