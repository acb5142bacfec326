r"""The canonical text of a JSON value, and digests of it.

Two values have one text exactly if the reference detector takes them for equal: no white space,
object keys in the order of their UTF-16 code units, numbers as IEEE doubles in JavaScript's layout
(see `numeral`), only the escapes that JSON demands, unpaired surrogates as ``\udxxx``. A number
beyond the range of a double is the *string* ``"Infinity"`` or ``"-Infinity"``.

`canonical_bytes` lets orjson write the values for which its output is the canonical text already;
`spelled` is the definition and writes all others.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Iterable
from enum import Enum
from json.encoder import encode_basestring
from typing import Any, Final

import orjson

from loopstream.fingerprint.numeral import is_number, number_text


class Missing(Enum):
    """Type of `MISSING`, an enum so that type checkers can narrow it."""

    MISSING = "undefined"


# A value that is not there, which differs from None, the JSON null.
MISSING: Final = Missing.MISSING

# Strict integers: orjson refuses those beyond 53 bits, which have to be rounded.
_ORJSON: Final = orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER
_EXACT_IN_ORJSON: Final = frozenset({str, int, bool, type(None)})
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")


def canonical(value: object) -> str:
    """The canonical text of what ``json.loads`` gives, or ``undefined`` for `MISSING`.

    Total on all output of ``json.loads``, its NaN and huge ints included, to the depth that the
    interpreter's stack allows (some 400; callers bound it at 128).

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
            # An int beyond 53 bits, an unpaired surrogate, or deeper than orjson goes.
            return spelled(value, _as_is)
    return spelled(value, _as_is)


def spelled(value: object, spell: Callable[[str], str]) -> bytes:
    """As `canonical_bytes`, each string and key passed through ``spell`` first.

    Keys are ordered by their spelling, and keys of one spelling (all are kept) by themselves. The
    spelling of ASCII text has to be ASCII.
    """
    text = _text(value, spell)
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
    """True if orjson's output, where it gives one, is canonical.

    It lays floats out otherwise, and sorts keys by code points, which on ASCII agrees with UTF-16.
    """
    if type(value) in _EXACT_IN_ORJSON:
        return True
    if isinstance(value, dict):
        return _has_ascii_keys(value) and all(map(_is_plain, value.values()))
    return isinstance(value, list) and all(map(_is_plain, value))


def _has_ascii_keys(value: Iterable[Any]) -> bool:
    try:
        return "".join(value).isascii()
    except TypeError:
        return False


def _as_is(text: str) -> str:
    return text


def _text(value: object, spell: Callable[[str], str]) -> str:
    if isinstance(value, str):
        return encode_basestring(spell(value))
    if isinstance(value, dict):
        members = [
            f"{encode_basestring(name)}:{_text(value[key], spell)}"
            for name, key in _ordered(value, spell)
        ]
        return f"{{{','.join(members)}}}"
    if isinstance(value, (list, tuple)):
        return f"[{','.join([_text(item, spell) for item in value])}]"
    return _scalar(value)


def _ordered(keys: Iterable[Any], spell: Callable[[str], str]) -> list[tuple[str, str]]:
    """Spelling and key of each member of an object, in the order of UTF-16 code units."""
    try:
        is_ascii = "".join(keys).isascii()
    except TypeError:
        raise TypeError("a key of an object is no string") from None
    pairs = [(spell(key), key) for key in keys]
    return sorted(pairs, key=None if is_ascii else _utf16)


def _utf16(pair: tuple[str, str]) -> list[bytes]:
    return [text.encode("utf-16-be", "surrogatepass") for text in pair]


def _scalar(value: object) -> str:
    if value is None:
        return "null"
    if value is MISSING:
        return "undefined"
    if isinstance(value, bool):
        return "true" if value else "false"
    if is_number(value):
        return _number(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _number(value: int | float) -> str:  # noqa: PYI041  # compiled, a float is no int
    text = number_text(value)
    return text if text[-1].isdigit() else f'"{text}"'


def _escape_surrogates(text: str) -> str:
    """Unpaired surrogates as escapes; two that make a pair become the character they spell."""
    paired = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", paired)
