"""Records of the topics as what the board takes up; bounded before they are parsed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from pydantic import ValidationError

from loopstream.errors import DataError
from loopstream.events.summary import RunSummary
from loopstream.runtime.topics import Topics
from loopstream.web.board import Block, Command, News, Passed, Summed
from loopstream.web.ring import Said
from loopstream.wire.codec import CONTENT_TYPE
from loopstream.wire.keys import MasterKey
from loopstream.wire.signing import KEY_ID, SIGNATURE, is_signed_verdict
from loopstream.wire.verdicts import decode_verdict

MAX_SUMMARY_BYTES: Final = 256 * 1024
MAX_CONTROL_BYTES: Final = 128 * 1024
_MAX_TEXT: Final = 1_000
# Beside its value a held item is a few Python objects.
_OVERHEAD: Final = 600


def news_of(record: Any, topics: Topics, keys: Sequence[MasterKey] = ()) -> News | None:
    """What a record says; None if it is of no use.

    Args:
        keys: a verdict that was signed with none of them is passed over; none: any counts.
    """
    if record.topic == topics.verdicts:
        return _verdict(record, keys)
    if record.topic == topics.runs:
        return _summary(record)
    if record.topic == topics.config:
        return _block(record)
    return _command(record)


def _verdict(record: Any, keys: Sequence[MasterKey]) -> Said | Passed:
    headers = dict(record.headers)
    try:
        verdict = decode_verdict(record.value, headers.get(CONTENT_TYPE))
    except DataError:
        return Passed(record.partition, record.offset)
    if keys:
        issued = [key.issue(verdict.runner or "") for key in keys]
        told = headers.get(KEY_ID), headers.get(SIGNATURE)
        if not is_signed_verdict(issued, verdict.scope, record.value, *told):
            return Passed(record.partition, record.offset, unsigned=True)
    return Said(verdict, record.partition, record.offset, len(record.value) + _OVERHEAD)


def _summary(record: Any) -> Summed | None:
    scope, value = _key(record), record.value
    if value is None:
        return Summed(scope, None, 0)
    if len(value) > MAX_SUMMARY_BYTES:
        return None
    try:
        summary = RunSummary.model_validate_json(value)
    except ValidationError:
        return None
    return Summed(scope, summary, len(value) + _OVERHEAD)


def _block(record: Any) -> Block | None:
    value = record.value
    if value is None:
        return Block(_key(record), None, record.offset, record.timestamp)
    if len(value) > MAX_CONTROL_BYTES:
        return None
    text = value.decode("utf-8", "replace")
    return Block(_key(record), text, record.offset, record.timestamp)


def _command(record: Any) -> Command | None:
    if record.value is None or len(record.value) > MAX_CONTROL_BYTES:
        return None
    try:
        fields = json.loads(record.value)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    action, reason, by = (
        str(fields.get(name) or "")[:_MAX_TEXT] for name in ("action", "reason", "by")
    )
    key = _key(record)
    place = (record.offset, record.timestamp)
    return Command(key, *place, action, reason, by, all_of_agent=fields.get("agent") == key)


def _key(record: Any) -> str:
    return (record.key or b"").decode("utf-8", "replace")
