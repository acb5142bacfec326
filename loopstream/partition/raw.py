"""Raw arguments and results to fingerprints, for runners that don't make their own."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from typing import Any, Final

from loopstream.events import CallFingerprint, OutcomeFingerprint, ToolCall, ToolOutcome
from loopstream.events.text import short_name
from loopstream.events.tool import ExtendedCall, ExtendedOutcome
from loopstream.fingerprint.calls import CallPrint, fingerprint_call, is_poll
from loopstream.fingerprint.canonical import MISSING
from loopstream.fingerprint.digests import call_digests, outcome_digests
from loopstream.fingerprint.extended.calls import Mark, extended_call, mark_of, oversize_call
from loopstream.fingerprint.extended.outcomes import outcome_of, oversize_outcome
from loopstream.fingerprint.outcomes import fingerprint_outcome, result_text
from loopstream.fingerprint.profiles import DOCUMENTED, EXTENDED
from loopstream.wire.limits import MAX_RAW_BYTES, MAX_RAW_DEPTH

# Longer integers overflow a double anyway, and Python refuses to read them in base ten.
_MAX_INTEGER_DIGITS: Final = 400
# Possessive, and a string may stay open: a text without end is read once, not once per quote.
_STRINGS: Final = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)


class RawValueError(ValueError):
    """A raw value is not JSON; the text is the name of its field."""


class Oversize:
    """A value over the bounds: known by the digest of its bytes alone."""

    def __init__(self, text: str, key: bytes | None) -> None:
        data = text.encode("utf-8", "surrogatepass")
        self.digest = (
            hashlib.sha256(data).digest() if key is None else hmac.digest(key, data, "sha256")
        )


def fingerprint_raw_call(
    event: ToolCall, profile: str, key: bytes | None, key_id: str | None
) -> ToolCall:
    """The event with a fingerprint in place of its raw arguments.

    Raises:
        RawValueError: the arguments are not JSON.
    """
    args = parse_raw("args", event.args, key)
    if profile == EXTENDED:
        fp = CallFingerprint(key_id=key_id, extended=_extended_call(event.tool, args, key))
    else:
        digests = call_digests(_call_print(event.tool, args, key))
        fp = (
            CallFingerprint(key_id=key_id, documented=digests)
            if profile == DOCUMENTED
            else CallFingerprint(key_id=key_id, reference=digests)
        )
    oversize = event.oversize or isinstance(args, Oversize)
    return event.model_copy(update={"fp": fp, "oversize": oversize})


def fingerprint_raw_outcome(
    event: ToolOutcome, profile: str, key: bytes | None, key_id: str | None
) -> ToolOutcome:
    """The event with a fingerprint in place of its raw values.

    Raises:
        RawValueError: a value is not JSON.
    """
    args = parse_raw("args", event.args, key)
    result = parse_raw("result", event.result, key)
    error = parse_raw("error", event.error, key)
    oversize = event.oversize or any(isinstance(raw, Oversize) for raw in (args, result, error))
    if profile == EXTENDED:
        extended = _extended_outcome(event.tool, args, result, error, key)
        fp = OutcomeFingerprint(key_id=key_id, extended=extended)
        return event.model_copy(update={"fp": fp, "oversize": oversize})
    huge = error if isinstance(error, Oversize) else result
    if isinstance(huge, Oversize) and (error is MISSING or huge is error):
        seen = fingerprint_outcome(event.tool, MISSING, result=None, profile=profile, key=key)
        seen = seen._replace(result=result_text(huge.digest, is_error=huge is error))
    else:
        seen = fingerprint_outcome(
            event.tool, _known(args), result=result, error=error, profile=profile, key=key
        )
    call = _call_print(event.tool, args, key)
    digests = outcome_digests(seen._replace(args=call.args, poll=call.poll))
    fp = (
        OutcomeFingerprint(key_id=key_id, documented=digests)
        if profile == DOCUMENTED
        else OutcomeFingerprint(key_id=key_id, reference=digests)
    )
    return event.model_copy(update={"fp": fp, "oversize": oversize})


def parse_raw(name: str, text: str | None, key: bytes | None = None) -> Any:
    """A raw value, `MISSING` where there is none, `Oversize` above the bounds.

    Raises:
        RawValueError: the text is not JSON.
    """
    if text is None:
        return MISSING
    # A character is at least one byte: the exact length is looked at only near the bound.
    if len(text) * 4 > MAX_RAW_BYTES and len(text.encode("utf-8", "surrogatepass")) > MAX_RAW_BYTES:
        return Oversize(text, key)
    if text.count("[") + text.count("{") > MAX_RAW_DEPTH and _depth(text) > MAX_RAW_DEPTH:
        return Oversize(text, key)
    try:
        return json.loads(text, parse_int=_integer, parse_constant=_refuse_constant)
    except ValueError:
        raise RawValueError(name) from None


def _call_print(tool: str, args: object, key: bytes | None) -> CallPrint:
    if isinstance(args, Oversize):
        return CallPrint(args.digest, is_poll(tool, None))
    return fingerprint_call(tool, args, key)


def _extended_call(tool: str, args: object, key: bytes | None) -> ExtendedCall:
    if isinstance(args, Oversize):
        return oversize_call(tool, args.digest, None)
    return extended_call(tool, args, key)


def _extended_outcome(
    tool: str, args: object, result: object, error: object, key: bytes | None
) -> ExtendedOutcome:
    if isinstance(args, Oversize):
        mark = Mark(args.digest, None, sends=False)
    else:
        mark = mark_of(tool, args, key)
    counted = result if error is MISSING else error
    if isinstance(counted, Oversize):
        return oversize_outcome(mark, counted.digest, failed=counted is error)
    made = outcome_of(mark, result=_known(result), error=error, key=key)
    if made.unknown_tool is None:
        return made
    return made.model_copy(update={"unknown_tool": short_name(made.unknown_tool)})


def _known(args: object) -> object:
    return MISSING if isinstance(args, Oversize) else args


def _depth(text: str) -> int:
    depth = deepest = 0
    for character in _STRINGS.sub("", text):
        if character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1
    return deepest


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) < _MAX_INTEGER_DIGITS else float(digits)


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)
