"""Raw arguments and results to fingerprints, for runners that don't make their own."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, Final

import orjson

from loopstream.events import CallFingerprint, OutcomeFingerprint, ToolCall, ToolOutcome
from loopstream.events.making import altered
from loopstream.events.text import short_name
from loopstream.events.tool import CallDigests, ExtendedCall, ExtendedOutcome, OutcomeDigests
from loopstream.fingerprint.calls import CallPrint, is_poll
from loopstream.fingerprint.canonical import MISSING, canonical_bytes, digest
from loopstream.fingerprint.digests import call_digests, outcome_digests
from loopstream.fingerprint.extended.calls import Mark, extended_call, mark_of, oversize_call
from loopstream.fingerprint.extended.outcomes import outcome_of, oversize_outcome
from loopstream.fingerprint.outcomes import OutcomePrint, fingerprint_outcome
from loopstream.fingerprint.profiles import DOCUMENTED, EXTENDED, REFERENCE
from loopstream.wire.limits import MAX_RAW_BYTES, MAX_RAW_DEPTH

_NO_CALL: Final = CallFingerprint()
_NO_OUTCOME: Final = OutcomeFingerprint()
_FIELDS: Final = {DOCUMENTED: "documented", REFERENCE: "reference", EXTENDED: "extended"}
# Texts so short are remembered for the outcome that follows, and for the next lap of a loop.
_REMEMBERED_CHARACTERS: Final = 2048
# Longer integers overflow a double anyway, and Python refuses to read them in base ten.
_MAX_INTEGER_DIGITS: Final = 400
# Possessive, and a string may stay open: a text without end is read once, not once per quote.
_STRINGS: Final = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)


class RawValueError(ValueError):
    """A raw value is not JSON; the text is the name of its field."""


class Oversize:
    """A value over the bounds: known by the digest of its bytes alone."""

    def __init__(self, text: str, key: bytes | None) -> None:
        self.digest = digest(text.encode("utf-8", "surrogatepass"), key)


def fingerprint_raw_call(
    event: ToolCall, profile: str, key: bytes | None, key_id: str | None
) -> ToolCall:
    """The event with a fingerprint in place of its raw arguments.

    Raises:
        RawValueError: the arguments are not JSON.
    """
    args, exact = _read_args(event.args, key)
    digests: CallDigests | ExtendedCall
    if profile == EXTENDED:
        digests = _extended_call(event.tool, args, key)
    else:
        digests = call_digests(CallPrint(exact, is_poll(event.tool, args)))
    fp = altered(_NO_CALL, key_id=key_id, **{_FIELDS[profile]: digests})
    return altered(event, fp=fp, oversize=event.oversize or isinstance(args, Oversize))


def fingerprint_raw_outcome(
    event: ToolOutcome, profile: str, key: bytes | None, key_id: str | None
) -> ToolOutcome:
    """The event with a fingerprint in place of its raw values.

    Raises:
        RawValueError: a value is not JSON.
    """
    args, exact = _read_args(event.args, key)
    result = parse_raw("result", event.result, key)
    error = parse_raw("error", event.error, key)
    digests: OutcomeDigests | ExtendedOutcome
    if profile == EXTENDED:
        digests = _extended_outcome(event.tool, args, result, error, key)
    else:
        call = CallPrint(exact, is_poll(event.tool, args))
        seen = _outcome_print(event.tool, profile, call, args, result, error, key)
        digests = outcome_digests(seen)
    fp = altered(_NO_OUTCOME, key_id=key_id, **{_FIELDS[profile]: digests})
    oversize = event.oversize or any(isinstance(raw, Oversize) for raw in (args, result, error))
    return altered(event, fp=fp, oversize=oversize)


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
        # Integers beyond 64 bits come as doubles: so does everything, in the canonical text.
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:
        # Unpaired surrogates, and numbers beyond the range of a double.
        return _LENIENT.decode(text)
    except ValueError:
        raise RawValueError(name) from None


def _read_args(text: str | None, key: bytes | None) -> tuple[Any, bytes]:
    """Arguments and their digest, which an outcome shares with its call.

    Raises:
        RawValueError: the text is not JSON.
    """
    if text is None or len(text) <= _REMEMBERED_CHARACTERS:
        return _remembered_args(text, key)
    return _args(text, key)


def _args(text: str | None, key: bytes | None) -> tuple[Any, bytes]:
    args = parse_raw("args", text, key)
    if isinstance(args, Oversize):
        return args, args.digest
    return args, digest(canonical_bytes(args), key)


_remembered_args: Final = lru_cache(maxsize=1024)(_args)


def _outcome_print(
    tool: str,
    profile: str,
    call: CallPrint,
    args: object,
    result: object,
    error: object,
    key: bytes | None,
) -> OutcomePrint:
    counted = result if error is MISSING else error
    if isinstance(counted, Oversize):
        return fingerprint_outcome(
            tool, MISSING, result=None, profile=profile, key=key, call=call
        )._replace(digest=counted.digest, failed=counted is error)
    # Where the error counts, the result is not looked at.
    return fingerprint_outcome(
        tool, _known(args), result=result, error=error, profile=profile, key=key, call=call
    )


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


_LENIENT: Final = json.JSONDecoder(parse_int=_integer, parse_constant=_refuse_constant)
