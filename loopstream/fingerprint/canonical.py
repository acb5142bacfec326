"""The canonical text of a JSON value, and digests of it.

Two values have one text exactly if the reference detector takes them for equal: no white space,
object keys in the order of their UTF-16 code units, numbers as IEEE doubles in JavaScript's layout
(see `numeral`), only the escapes that JSON demands, unpaired surrogates as ``\\udxxx``. A number
beyond the range of a double is the *string* ``"Infinity"`` or ``"-Infinity"``.

`canonical_bytes` lets orjson write the values for which its output is the canonical text already;
`spelled` is the definition and writes all others.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import re
from collections.abc import Callable
from enum import Enum
from json.encoder import encode_basestring
from typing import Final

import orjson

from loopstream.fingerprint.numeral import is_number, nearest_double, number_text


class Missing(Enum):
    """Type of `MISSING`, an enum so that type checkers can narrow it."""

    MISSING = "undefined"


# A value that is not there, which differs from None, the JSON null.
MISSING: Final = Missing.MISSING

# Strict integers: orjson refuses those beyond 53 bits, which have to be rounded.
_ORJSON: Final = orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER
_EXACT_IN_ORJSON: Final = frozenset({str, int, bool, type(None)})
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def canonical(value: object) -> str:
    """The canonical text of what ``json.loads`` gives, or ``undefined`` for `MISSING`.

    Total on all output of ``json.loads``, its NaN and huge ints included, to the depth that the
    interpreter's stack allows (some 900; callers bound it at 128).

    Raises:
        TypeError: the value, or one within it, has no JSON form, or a key is no string.
    """
    return canonical_bytes(value).decode()


def canonical_bytes(value: object) -> bytes:
    """The UTF-8 bytes of `canonical`: what gets hashed."""
    if _is_plain(value):
        try:
            return orjson.dumps(value, option=_ORJSON)
        except orjson.JSONEncodeError:
            # An int beyond 53 bits, an unpaired surrogate, or nesting below orjson's bound.
            pass
    return spelled(value, _as_is)


def spelled(value: object, spell: Callable[[str], str]) -> bytes:
    """As `canonical_bytes`, each string and key passed through ``spell`` first.

    Keys are ordered by their spelling, and keys of one spelling (all are kept) by themselves.
    """
    parts: list[str] = []
    _write(value, spell, parts.append)
    text = "".join(parts)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _escape_surrogates(text).encode()


def digest(text: str | bytes, key: bytes | None = None) -> bytes:
    """SHA-256 of the UTF-8 text, or HMAC-SHA-256 with a tenant's key: 32 bytes."""
    data = text.encode() if isinstance(text, str) else text
    if key is None:
        return hashlib.sha256(data).digest()
    return hmac.digest(key, data, "sha256")


def _is_plain(value: object) -> bool:
    """True if orjson's output, when there is one, is canonical.

    Floats are laid out otherwise by orjson, and it sorts keys by code points, which agrees with
    UTF-16 code units on ASCII.
    """
    kind = type(value)
    if kind in _EXACT_IN_ORJSON:
        return True
    if kind is dict:
        return _has_ascii_keys(value) and all(map(_is_plain, value.values()))  # type: ignore[attr-defined]
    return kind is list and all(map(_is_plain, value))  # type: ignore[call-overload]


def _has_ascii_keys(value: object) -> bool:
    try:
        return "".join(value).isascii()  # type: ignore[call-overload]
    except TypeError:
        return False


def _as_is(text: str) -> str:
    return text


def _write(value: object, spell: Callable[[str], str], out: Callable[[str], None]) -> None:
    if isinstance(value, str):
        out(encode_basestring(spell(value)))
    elif isinstance(value, dict):
        _write_object(value, spell, out)
    elif isinstance(value, (list, tuple)):
        _write_array(value, spell, out)
    else:
        out(_scalar(value))
