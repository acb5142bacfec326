"""Fingerprint of an outcome for profile ``extended``."""

from __future__ import annotations

import re
from typing import Any, Final

from loopstream.events.tool import ExtendedOutcome
from loopstream.fingerprint.canonical import MISSING, canonical_bytes, digest
from loopstream.fingerprint.errors import error_text
from loopstream.fingerprint.extended.calls import SHORT, Mark, mark_of, short
from loopstream.fingerprint.extended.failures import Failure, failure_of_result, failure_of_text
from loopstream.fingerprint.extended.normal import delivered, masked_result
from loopstream.fingerprint.results import is_loop_veto, read_result

_ACKNOWLEDGED: Final = re.compile(
    rb'(?:""|null|true|\{\}|\[\]|\{"ok":true\}|\{"success":true\}|undefined'
    rb'|"(?:ok|okay|done|success(?:ful(?:ly)?)?|true|completed?|saved|created|updated|deleted'
    rb"|moved|sent|added|removed|archived|accepted|queued|started|\xe2\x9c\x93)"
    rb"[.! ]*(?:\w+ ?){0,3}[.!]?\")",
    re.IGNORECASE,
)
_SHOWN_BYTES: Final = 64


def extended_outcome(
    tool: str,
    args: object,
    *,
    result: object = MISSING,
    error: object = MISSING,
    key: bytes | None = None,
) -> ExtendedOutcome:
    """What may leave the runner of an outcome: an error if there is one (even null), else the
    result. About 60 us for short values.

    Raises:
        TypeError: a value has no JSON form.
    """
    return outcome_of(mark_of(tool, args, key), result=result, error=error, key=key)


def outcome_of(
    call: Mark, *, result: object = MISSING, error: object = MISSING, key: bytes | None = None
) -> ExtendedOutcome:
    """As `extended_outcome`, of a call whose mark is known."""
    base: dict[str, Any] = {"args": call.args, "masked": call.masked}
    if error is not MISSING:
        text = error_text(error, canonical_bytes)
        return _made(base, {"error": masked_result(text)}, failure_of_text(text), key)
    if result is MISSING:
        return ExtendedOutcome.model_construct(**base)
    if isinstance(result, dict) and is_loop_veto(read_result(result).details):
        return ExtendedOutcome.model_construct(**base, refused="veto")
    value = masked_result(delivered(result) if call.sends else result)
    unchanged = isinstance(result, dict) and read_result(result).details.get("changed") is False
    if unchanged:
        base["unchanged"] = True
    return _made(base, value, failure_of_result(result), key)


def oversize_outcome(call: Mark, value_digest: bytes, *, failed: bool) -> ExtendedOutcome:
    """A value over the bounds is known by the digest of its bytes alone."""
    kind: dict[str, Any] = (
        {"failure": "other", "failure_class": value_digest[:SHORT]} if failed else {}
    )
    return ExtendedOutcome.model_construct(
        args=call.args, masked=call.masked, result=value_digest[:SHORT], size=20, **kind
    )


def _made(
    base: dict[str, Any], value: object, failure: Failure | None, key: bytes | None
) -> ExtendedOutcome:
    data = canonical_bytes(value)
    base["result"] = digest(data, key)[:SHORT]
    base["size"] = len(data).bit_length()
    if failure is None:
        base["ack"] = len(data) <= _SHOWN_BYTES and _ACKNOWLEDGED.fullmatch(data) is not None
        return ExtendedOutcome.model_construct(**base)
    if failure.kind == "denied":
        base["refused"] = "denied"
    name = f"{failure.kind}:{failure.code}:{failure.text}"
    return ExtendedOutcome.model_construct(
        **base,
        failure=failure.kind,
        failure_class=short(name, key),
        server=short(failure.server, key),
        unknown_tool=failure.unknown_tool,
    )
