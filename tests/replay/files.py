"""Files of records, as people bring them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from loopstream.events import EVENT, Control, Pin
from loopstream.partition.marker import policy_text
from loopstream.policy.deployment import Deployment
from loopstream.wire.codec import encode_json, event_fields, pack_frame
from loopstream.wire.routing import partition_of, scope_key

Fields = dict[str, Any]


def bare(path: Path, events: Iterable[Fields]) -> Path:
    """One JSON event a line."""
    with path.open("wb") as file:
        for event in events:
            file.write(encode_json(EVENT.validate_python(event)) + b"\n")
    return path


def kcat(
    path: Path,
    events: Iterable[Fields],
    partitions: int = 2,
    pin: Pin | None = None,
    first_offset: int = 0,
    ts: int = 1_000_000,
) -> Path:
    """One event a record, in `kcat -J`'s envelope with msgpack payloads as they are."""
    offsets = dict.fromkeys(range(partitions), first_offset)
    with path.open("wb") as file:
        for number in range(partitions):
            if pin is not None:
                file.write(line(number, offsets[number], pack_frame([event_fields(pin)]), ts))
                offsets[number] += 1
        for at, event in enumerate(events):
            if "offset" in event and event["type"] == "control":
                number = 0
            else:
                scope = scope_key(event.get("run"), event.get("session")) or ""
                number = partition_of(scope, partitions)
            file.write(line(number, offsets[number], pack_frame([event]), ts + at))
            offsets[number] += 1
    return path


def line(number: int, offset: int, value: bytes, ts: int, topic: str = "p.events") -> bytes:
    fields = {
        "topic": topic,
        "partition": number,
        "offset": offset,
        "tstype": "logappend",
        "ts": ts,
        "broker": 0,
        "key": None,
        "payload": value.decode("utf-8", "surrogateescape"),
    }
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "surrogateescape") + b"\n"


def pinned(prefix: str = "p", **block: Any) -> Pin:
    """A pin with one block for everyone."""
    settings = {"*": json.dumps({"enabled": True, **block})}
    return Pin(
        v=1,
        type="pin",
        time=1,
        config_offset=0,
        commands_offset=-1,
        settings=settings,
        policy=policy_text(Deployment(prefix=prefix)),
    )


def control(offset: int, body: str | None, key: str = "*", source: str = "config") -> Fields:
    """A settings push as the owner of partition 0 would sequence it."""
    digest = hashlib.sha256((body or "").encode()).digest()
    made = Control(
        v=1,
        type="control",
        time=1,
        source="config" if source == "config" else "commands",
        offset=offset,
        sha256=digest,
        key=key,
        body=body,
    )
    return event_fields(made)
