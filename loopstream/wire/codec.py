"""Records to events and back.

A record's value is a msgpack frame ``{"v": 1, "events": [...]}``, a single msgpack event, or a
single JSON event. What can't be used comes back as a `Reject` with its place; its neighbours in
the frame are not affected.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgpack
from pydantic import ValidationError

from loopstream.events import EVENT, EVENTS, SCHEMA_VERSION, Event, RejectCode
from loopstream.events.tool import ToolCall, ToolOutcome
from loopstream.wire.limits import (
    MAX_EVENT_BYTES,
    MAX_EVENT_DEPTH,
    MAX_EVENTS_PER_FRAME,
    MAX_RECORD_BYTES,
)

CONTENT_TYPE: Final = "content-type"
JSON_TYPE: Final = b"application/json"
FRAME_TYPE: Final = b"application/msgpack"
WHOLE_RECORD: Final = -1

_JSON_STARTS: Final = b"{ \t\r\n"
# Possessive, and a string may stay open: a value without end is read once, not once per quote.
_JSON_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_CONTAINERS: Final = frozenset((dict, list))


@dataclass(frozen=True, slots=True)
class Reject:
    """A record or event that can't be used, and why.

    ``detail`` names a field or a bound in our words; it never repeats what was sent.
    """

    index: int
    code: RejectCode
    detail: str | None = None


@dataclass(slots=True)
class Decoded:
    """The usable events of a record with their places in it, and what was refused.

    ``signer`` is who signed the record, where that is checked (`wire.signing`).
    """

    events: list[Event] = field(default_factory=list)
    indexes: Sequence[int] = ()
    rejects: list[Reject] = field(default_factory=list)
    signer: str | None = None


def decode_record(value: bytes | None, content_type: bytes | None = None) -> Decoded:
    """Decode one record value; never raises on bad input.

    Args:
        value: the record's value; None (a tombstone) is refused.
        content_type: the record's ``content-type`` header; without one the first byte decides.
    """
    if value is None:
        return _refused(RejectCode.NULL_VALUE)
    if len(value) > MAX_RECORD_BYTES:
        return _refused(RejectCode.OVERSIZE_RECORD, f"more than {MAX_RECORD_BYTES} bytes")
    if is_json(value, content_type):
        return _decode_json(value)
    return _decode_msgpack(value)


def is_json(value: bytes, content_type: bytes | None) -> bool:
    """Whether a record is a single JSON event: by its header, else by its first byte."""
    if content_type is not None:
        return content_type.split(b";", 1)[0].strip().lower() == JSON_TYPE
    return value[:1] in _JSON_STARTS and value != b""


def encode_frame(events: Iterable[Event]) -> bytes:
    """Pack events into one msgpack frame."""
    return pack_frame([event_fields(event) for event in events])


def pack_frame(events: list[dict[str, Any]]) -> bytes:
    """Pack events that are dictionaries of wire fields already."""
    return bytes(msgpack.packb({"v": SCHEMA_VERSION, "events": events}))


def event_fields(event: Event) -> dict[str, Any]:
    """An event's fields as they go into a frame; what is at its default is left out."""
    fields = event.model_dump(exclude_defaults=True)
    fields["v"], fields["type"] = SCHEMA_VERSION, event.type
    return fields


def encode_json(event: Event) -> bytes:
    """One event as a JSON record value."""
    return event.model_dump_json(exclude_none=True).encode()


def _refused(code: RejectCode, detail: str | None = None) -> Decoded:
    return Decoded(rejects=[Reject(WHOLE_RECORD, code, detail)])


def _decode_json(value: bytes) -> Decoded:
    if value.count(b"{") + value.count(b"[") > MAX_EVENT_DEPTH and _json_too_deep(value):
        return _refused(RejectCode.TOO_DEEP, f"nested deeper than {MAX_EVENT_DEPTH}")
    try:
        event = EVENT.validate_json(value)
    except ValidationError as error:
        return Decoded(rejects=[_explain(WHOLE_RECORD, error)])
    if len(value) > MAX_EVENT_BYTES and len(value) - _raw_bytes(event) > MAX_EVENT_BYTES:
        return _refused(RejectCode.OVERSIZE_EVENT, f"more than {MAX_EVENT_BYTES} bytes")
    return Decoded([event], (0,))


def _json_too_deep(value: bytes) -> bool:
    depth = 0
    for byte in _JSON_STRING.sub(b"", value):
        if byte in b"{[":
            depth += 1
            if depth > MAX_EVENT_DEPTH:
                return True
        elif byte in b"}]":
            depth -= 1
    return False


def _raw_bytes(event: Event) -> int:
    """Upper bound of the bytes that an event's raw values take in escaped JSON."""
    raw: tuple[str | None, ...] = ()
    if isinstance(event, ToolCall):
        raw = (event.args,)
    elif isinstance(event, ToolOutcome):
        raw = (event.args, event.result, event.error)
    # Six bytes a character: the longest escape, \uXXXX.
    return sum(len(text) * 6 for text in raw if text is not None)


def _decode_msgpack(value: bytes) -> Decoded:
    try:
        # strict_map_key refuses integer keys; the length bounds refuse lies about sizes early.
        # Bytes that are no UTF-8 become surrogates, which validation refuses event by event.
        frame = msgpack.unpackb(
            value,
            raw=False,
            unicode_errors="surrogateescape",
            strict_map_key=True,
            max_array_len=MAX_EVENTS_PER_FRAME,
            max_map_len=256,
            max_ext_len=0,
        )
    except Exception as error:  # noqa: BLE001 - msgpack raises several unrelated kinds
        if "max_array_len" in str(error):
            return _refused(RejectCode.TOO_MANY_EVENTS, f"more than {MAX_EVENTS_PER_FRAME} events")
        return _refused(RejectCode.UNDECODABLE, type(error).__name__)
    if type(frame) is not dict:
        return _refused(RejectCode.UNDECODABLE, "not a frame")
    if "events" not in frame:
        return _validate([frame])
    if frame.get("v") != SCHEMA_VERSION or type(frame["v"]) is not int:
        return _refused(RejectCode.UNKNOWN_VERSION, "frame version")
    events = frame["events"]
    if type(events) is not list:
        return _refused(RejectCode.INVALID, "events")
    return _validate(events)


def _validate(events: list[Any]) -> Decoded:
    if not any(map(_is_deep, events)):
        try:
            return Decoded(EVENTS.validate_python(events), range(len(events)))
        except ValidationError:
            pass  # at least one is bad: find out which, and keep the others
    return _validate_each(events)


def _validate_each(events: list[Any]) -> Decoded:
    good: list[Event] = []
    indexes: list[int] = []
    rejects: list[Reject] = []
    for index, fields in enumerate(events):
        if _too_deep(fields):
            detail = f"nested deeper than {MAX_EVENT_DEPTH}"
            rejects.append(Reject(index, RejectCode.TOO_DEEP, detail))
            continue
        try:
            good.append(EVENT.validate_python(fields))
            indexes.append(index)
        except ValidationError as error:
            rejects.append(_explain(index, error))
    return Decoded(good, indexes, rejects)


def _is_deep(event: Any) -> bool:
    """As `_too_deep`, at a glance where an event holds no more than its ``fp``, and that flat
    blocks: nearly every one does.
    """
    if type(event) is not dict:
        return False
    for value in event.values():
        kind = type(value)
        if kind is list:
            return _too_deep(event)
        if kind is dict:
            for block in value.values():
                if type(block) is list or (type(block) is dict and _holds_containers(block)):
                    return _too_deep(event)
    return False


def _holds_containers(block: dict[str, Any]) -> bool:
    for value in block.values():  # noqa: SIM110 - a generator costs more than the loop
        if type(value) in _CONTAINERS:
            return True
    return False


def _too_deep(value: Any) -> bool:
    """Whether an event nests deeper than the bound; iterative: a bomb can't exhaust the stack."""
    if type(value) is not dict:
        return False  # no event: refused without being looked into
    level = [child for child in value.values() if type(child) in _CONTAINERS]
    for _ in range(MAX_EVENT_DEPTH - 1):
        if not level:
            return False
        level = [
            child
            for node in level
            for child in (node.values() if type(node) is dict else node)
            if type(child) in _CONTAINERS
        ]
    return bool(level)


def _explain(index: int, error: ValidationError) -> Reject:
    """Name the first fault: its code, and the path of the field."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    kind, place = first["type"], _known_part(first["loc"])
    if kind == "json_invalid":
        return Reject(index, RejectCode.UNDECODABLE, "not JSON")
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return Reject(index, RejectCode.UNKNOWN_TYPE, "type")
    # The first part of the path is the union's tag.
    path = ".".join(place[1:])
    if place[-1:] == ["v"] and kind == "literal_error":
        return Reject(index, RejectCode.UNKNOWN_VERSION, path)
    return Reject(index, RejectCode.INVALID, f"{path}: {kind}" if path else kind)


def _known_part(place: Iterable[int | str]) -> list[str]:
    """The path of a field, up to where names begin that the sender chose (a pin's agents)."""
    parts = [str(part) for part in place]
    return parts[: parts.index("settings") + 1] if "settings" in parts else parts
