"""Python values as JSON text: total, bounded, and the same for equal values.

Agents hand over what they have. Values that JSON knows are written as they are; a few well-known
types have a fixed spelling (times in ISO 8601, bytes by their digest, sets sorted); of any other
object only its type's name counts, because its ``repr`` may hold an address.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import hashlib
import ipaddress
import json
import pathlib
import uuid
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple

from pydantic import BaseModel

from loopstream.fingerprint.canonical import MISSING, canonical
from loopstream.wire.limits import MAX_RAW_BYTES, MAX_RAW_DEPTH

# Their str() is stable, and says all of them.
_BY_TEXT: Final = (
    decimal.Decimal,
    fractions.Fraction,
    uuid.UUID,
    pathlib.PurePath,
    ipaddress.IPv4Address,
    ipaddress.IPv6Address,
    dt.timedelta,
)
_BY_ISO: Final = (dt.datetime, dt.date, dt.time)
_CONTAINERS: Final = (dict, list, tuple)
# No subclasses: an enum is none of these, nor is a number of another library.
_SCALARS: Final = frozenset({str, int, float, bool, type(None)})
# Python refuses to write integers of more than some 4,300 digits in decimal.
_WRITTEN_BITS: Final = 1024
_MAX_NODES: Final = 10_000
_CUT: Final = "<too deep>"


class Json(NamedTuple):
    """A value as JSON.

    Attributes:
        text: the JSON text; None when there is no value.
        value: what the text says, as JSON types; `MISSING` when there is no value.
        oversize: over the wire's bounds for raw values (256 KiB, depth 128); the digest is then
            that of the text's bytes, and the text does not travel.
    """

    text: str | None
    value: Any
    oversize: bool = False

    def encoded(self) -> bytes:
        """The text's bytes."""
        return (self.text or "").encode("utf-8", "surrogatepass")


NOTHING: Final = Json(None, MISSING)


def to_json(value: object) -> Json:
    """Write any Python value as JSON; never raises."""
    if value is MISSING:
        return NOTHING
    try:
        text = _ENCODER.encode(value)
        plain = value if _is_plain(value) else json.loads(text)
    except Exception:  # noqa: BLE001 - a value may be of any class, and its methods may do anything
        return _salvaged(value)
    return Json(text, plain, _is_oversize(text, plain))


def is_text_oversize(text: str) -> bool:
    """Whether a text is longer than raw values may be."""
    # At most four bytes a character: a short text need not be encoded.
    if len(text) * 4 <= MAX_RAW_BYTES:
        return False
    return len(text.encode("utf-8", "surrogatepass")) > MAX_RAW_BYTES


def _is_plain(value: object) -> bool:
    """Whether the fingerprints read the value as the encoder does."""
    kind = type(value)
    if kind in _SCALARS:
        return True
    if isinstance(value, dict):
        return all(type(key) is str for key in value) and all(map(_is_plain, value.values()))
    return isinstance(value, list | tuple) and all(map(_is_plain, value))


def _is_oversize(text: str, value: object) -> bool:
    if is_text_oversize(text):
        return True
    return text.count("{") + text.count("[") > MAX_RAW_DEPTH and _is_deep(value)


def _is_deep(value: object) -> bool:
    level: list[Any] = [value]
    for _ in range(MAX_RAW_DEPTH + 1):
        level = [node for node in level if isinstance(node, _CONTAINERS)]
        if not level:
            return False
        level = [
            child for node in level for child in (node.values() if type(node) is dict else node)
        ]
    return True


def _spell(value: object) -> object:
    """What the encoder writes for a value that JSON does not know."""
    if isinstance(value, _BY_ISO):
        return value.isoformat()
    if isinstance(value, _BY_TEXT):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes, sha256:{hashlib.sha256(value).hexdigest()}>"
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, BaseException):
        return exception_text(value)
    return _spell_container(value)


def _spell_container(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, AbstractSet):
        return sorted((json.loads(_ENCODER.encode(item)) for item in value), key=canonical)
    if isinstance(value, Sequence):
        return list(value)
    return _type_name(value)


def exception_text(error: BaseException) -> str:
    """An exception as an outcome's error: its message, or its class if it has none."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a class may say anything about itself
        text = ""
    return text or type(error).__qualname__


def _type_name(value: object) -> str:
    return f"<{type(value).__module__}.{type(value).__qualname__}>"


_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_spell)


def _salvaged(value: object) -> Json:
    """What can be written of a value that can't be written as it is."""
    rescue = _Rescue()
    try:
        plain = rescue.read(value, 0)
        text = _ENCODER.encode(plain)
    except Exception:  # noqa: BLE001 - as in to_json; also a stack that is nearly full
        plain = _type_name(value)
        text = _ENCODER.encode(plain)
    return Json(text, plain, rescue.cut or _is_oversize(text, plain))


class _Rescue:
    """Copies a value as JSON types, down to the wire's depth and a number of nodes."""

    def __init__(self) -> None:
        self.cut = False
        self._nodes = 0

    def read(self, value: object, depth: int) -> Any:
        self._nodes += 1
        if depth > MAX_RAW_DEPTH or self._nodes > _MAX_NODES:
            self.cut = True
            return _CUT
        if isinstance(value, dict):
            return {_key(key): self.read(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return self._items(value, depth)
        if isinstance(value, int) and not isinstance(value, bool):
            return value if value.bit_length() <= _WRITTEN_BITS else hex(value)
        if value is None or isinstance(value, str | bool | float):
            return value
        return self._other(value, depth)

    def _items(self, items: Iterable[object], depth: int) -> list[Any]:
        copy = []
        for item in items:
            copy.append(self.read(item, depth + 1))
            if self._nodes > _MAX_NODES:
                break
        return copy

    def _other(self, value: object, depth: int) -> Any:
        try:
            spelled = _spell(value)
        except Exception:  # noqa: BLE001 - as in to_json
            return _type_name(value)
        return self.read(spelled, depth + 1)


def _key(key: object) -> str:
    """As the encoder writes the keys that it takes; by their spelling those that it does not."""
    if isinstance(key, str):
        return key
    if isinstance(key, int) and key.bit_length() > _WRITTEN_BITS:
        return hex(key)
    if key is None or isinstance(key, int | float):
        return json.dumps(key)
    return str(_spell(key))
