"""Values without what is volatile in them: arguments, results, errors."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from loopstream.events.text import trim
from loopstream.fingerprint.canonical import MISSING
from loopstream.fingerprint.extended.keys import role_of
from loopstream.fingerprint.extended.mask import MASK, mask, mask_temporary
from loopstream.fingerprint.sends import stripped
from loopstream.fingerprint.wrapped import zero_nonces

# A longer text is not looked into for JSON.
_MAX_EMBEDDED: Final = 65_536
_MAX_DEPTH: Final = 64
_VOLATILE: Final = ("volatile",)
_NEW_EACH_TIME: Final = ("volatile", "given_out")
_LONG_NUMBER: Final = 100_000
_SPACE: Final = re.compile(r"\s")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_BUSTER: Final = re.compile(
    r"([?&](?:_|ts?|time|timestamp|nonce|cb|cache\w*|rand\w*)=)[^&#\s]+", re.ASCII | re.IGNORECASE
)
_DOTS: Final = re.compile(r"(?<![^/])\./|(?<=/)/+")


def decoded(args: object) -> object:
    """Arguments as an object also where a model wrote them as JSON text."""
    if isinstance(args, str):
        inner = _embedded(args)
        return args if inner is MISSING else inner
    return args


def masked_args(value: object, key: str = "", depth: int = 0) -> object:
    """Arguments with the volatile parts masked; what names a thing stays exact.

    A whole value under a key such as ``id``, ``path`` or ``date`` says which thing is meant:
    masking it would make ten different orders one call.
    """
    if isinstance(value, dict):
        if depth >= _MAX_DEPTH:
            return value
        return {k: masked_args(v, k, depth + 1) for k, v in value.items()}
    if isinstance(value, list):
        return value if depth >= _MAX_DEPTH else [masked_args(v, key, depth + 1) for v in value]
    if isinstance(value, str):
        return _masked_arg_text(value, key)
    return _masked_number(value, key, _VOLATILE) if _is_number(value) else value


def masked_result(value: object, key: str = "", depth: int = 0) -> object:
    """A result or error with the volatile parts masked; texts trimmed."""
    if isinstance(value, dict):
        if depth >= _MAX_DEPTH:
            return value
        return {k: masked_result(v, k, depth + 1) for k, v in value.items()}
    if isinstance(value, list):
        return value if depth >= _MAX_DEPTH else [masked_result(v, key, depth + 1) for v in value]
    if isinstance(value, str):
        if role_of(key) in _NEW_EACH_TIME:
            return MASK
        inner = _embedded(value)
        if inner is not MISSING and depth < _MAX_DEPTH:
            return masked_result(inner, key, depth + 1)
        return trim(mask(zero_nonces(value)))
    return _masked_number(value, key, _NEW_EACH_TIME) if _is_number(value) else value


def delivered(result: object) -> object:
    """What a send gave back, without ids and times of delivery."""
    return stripped(result)


def _masked_arg_text(text: str, key: str) -> object:
    role = role_of(key)
    if role == "volatile":
        return MASK
    if role == "place":
        return _DOTS.sub("", _BUSTER.sub(rf"\1{MASK}", mask_temporary(text)))
    # A name is one word; longer texts may have anything in them.
    if (role in ("identity", "given_out") and not _SPACE.search(text)) or _DATE.fullmatch(text):
        return mask_temporary(text)
    inner = _embedded(text)
    return mask(text) if inner is MISSING else masked_args(inner, key, 1)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _masked_number(value: Any, key: str, masked: tuple[str, ...]) -> object:
    role = role_of(key)
    if role in masked:
        return MASK
    long = role == "plain" and (value >= _LONG_NUMBER or value <= -_LONG_NUMBER)
    return MASK if long else value


def _embedded(text: str) -> object:
    """The object or list that a text spells in JSON, else `MISSING`."""
    if len(text) > _MAX_EMBEDDED or text.lstrip()[:1] not in ("{", "["):
        return MISSING
    try:
        inner = json.loads(text)
    except (ValueError, RecursionError):
        return MISSING
    return inner if isinstance(inner, dict | list) else MISSING
