"""kcat's ``-J`` envelope: one JSON object a record.

``{"topic", "partition", "offset", "tstype", "ts", "broker", "headers": [k, v, …], "key",
"payload"}``. kcat writes the payload's bytes as they are. We write msgpack frames as the text of a
JSON frame, so that pipes can read it; read back it is the same frame.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgpack
from pydantic import ValidationError

from loopstream.errors import DataError
from loopstream.events import EVENT
from loopstream.replay.opening import decoded
from loopstream.replay.records import FileRecord, Record
from loopstream.wire.codec import (
    CONTENT_TYPE,
    FRAME_TYPE,
    JSON_TYPE,
    WHOLE_RECORD,
    event_fields,
    is_json,
)
from loopstream.wire.limits import MAX_EVENTS_PER_FRAME
from loopstream.wire.signing import SIGNATURE

_NEEDED: Final = ("partition", "offset", "payload")
_HINT: Final = "The envelope is that of `kcat -J` and of `loopstream tail`."
_JSON_FRAME: Final = b"application/vnd.loopstream.frame+json"
_MAX_OFFSET: Final = 2**63 - 1


def is_envelope(fields: dict[str, Any]) -> bool:
    """Whether a line is a record in an envelope."""
    return all(name in fields for name in _NEEDED)


def to_envelope(record: Record, topic: str, *, events: bool = True) -> dict[str, Any]:
    """A record in the envelope; msgpack as JSON text.

    Args:
        events: the payload is of the events topic: frames that can be read back.
    """
    headers = dict(record.headers)
    payload = None
    if record.value is not None:
        payload, content_type = _payload(record, record.value, headers, events=events)
        if content_type is not None:
            headers[CONTENT_TYPE] = content_type
    if SIGNATURE in headers:
        # It is good for the record's own bytes, not for what is written here: only to be seen.
        headers[SIGNATURE] = headers[SIGNATURE].hex().encode()
    flat = [part for k, v in headers.items() for part in (k, v.decode("utf-8", "replace"))]
    return {
        "topic": topic,
        "partition": record.partition,
        "offset": record.offset,
        "tstype": "logappend",
        "ts": record.timestamp,
        "broker": -1,
        "headers": flat,
        "key": None if record.key is None else record.key.decode("utf-8", "replace"),
        "payload": payload,
    }


def _payload(
    record: Record, value: bytes, headers: dict[str, bytes], *, events: bool
) -> tuple[str, bytes | None]:
    """The payload as text, and its content type if that is another one now."""
    if is_json(value, headers.get(CONTENT_TYPE)):
        return value.decode("utf-8", "replace"), None
    if not events:
        return _unpacked(value), JSON_TYPE
    frame = _json_frame(record)
    if frame is None:
        return value.decode("utf-8", "replace"), None
    return json.dumps(frame, ensure_ascii=False), _JSON_FRAME


def _unpacked(value: bytes) -> str:
    try:
        fields = msgpack.unpackb(value, raw=False, strict_map_key=True, max_ext_len=0)
        return json.dumps(fields, ensure_ascii=False, default=bytes.hex)
    except Exception:  # noqa: BLE001 - msgpack raises several unrelated kinds
        return value.decode("utf-8", "replace")


def _json_frame(record: Record) -> dict[str, Any] | None:
    """A frame's events at their places; null where one could not be used; None: no frame at all."""
    found = decoded(record)
    if any(reject.index == WHOLE_RECORD for reject in found.rejects):
        return None
    size = max([*found.indexes, *(reject.index for reject in found.rejects)], default=-1) + 1
    events: list[Any] = [None] * size
    for index, event in zip(found.indexes, found.events, strict=True):
        events[index] = event.model_dump(mode="json", exclude_defaults=True) | {
            "v": event.v,
            "type": event.type,
        }
    return {"v": 1, "events": events}


def from_envelope(fields: dict[str, Any], where: str) -> FileRecord:
    """A record out of its envelope.

    Raises:
        DataError: a field is malformed.
    """
    partition, offset, ts = fields["partition"], fields["offset"], fields.get("ts", 0)
    payload, key = fields["payload"], fields.get("key")
    numbers = all(isinstance(n, int) and 0 <= n <= _MAX_OFFSET for n in (partition, offset))
    if not numbers or not isinstance(ts, int):
        raise DataError("partition, offset or ts is no number.", where=where, hint=_HINT)
    if not isinstance(payload, str | None) or not isinstance(key, str | None):
        raise DataError("payload or key is no text.", where=where, hint=_HINT)
    headers = _headers(fields.get("headers"), where)
    value = None if payload is None else _bytes(payload)
    for at, (name, content_type) in enumerate(headers):
        if name == CONTENT_TYPE and content_type == _JSON_FRAME and value is not None:
            value = _frame(value, where)
            headers[at] = (CONTENT_TYPE, FRAME_TYPE)
    return FileRecord(
        partition, offset, max(0, ts), None if key is None else _bytes(key), value, headers
    )


def _headers(flat: object, where: str) -> list[tuple[str, bytes]]:
    if flat is None:
        return []
    if not isinstance(flat, list) or len(flat) % 2:
        raise DataError("headers are no list of names and values.", where=where, hint=_HINT)
    pairs = zip(flat[::2], flat[1::2], strict=True)
    return [(str(name), _bytes(value if isinstance(value, str) else "")) for name, value in pairs]


def _bytes(text: str) -> bytes:
    """The bytes that were read; what JSON wrote as an unpaired surrogate has none."""
    return text.encode("utf-8", "surrogateescape" if _escaped(text) else "surrogatepass")


def _escaped(text: str) -> bool:
    return not any(
        "\ud800" <= char <= "\udfff" and not "\udc80" <= char <= "\udcff" for char in text
    )


def _frame(value: bytes, where: str) -> bytes:
    """The msgpack frame that a JSON frame was made of."""
    try:
        frame = json.loads(value)
        events = frame["events"]
        if len(events) > MAX_EVENTS_PER_FRAME:
            raise DataError("too many events in a frame.", where=where)
        return bytes(msgpack.packb({"v": frame["v"], "events": [_event(e) for e in events]}))
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        raise DataError("a payload that is no frame.", where=where, hint=_HINT) from None


def _event(fields: Any) -> Any:
    if fields is None:
        return None
    try:
        return event_fields(EVENT.validate_json(json.dumps(fields)))
    except ValidationError:
        return None  # refused again at the same place
