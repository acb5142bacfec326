"""Python values as JSON: total, bounded, and the same for equal values.

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

from loopstream.fingerprint.canonical import MISSING, canonical, canonical_bytes
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
# Python refuses to write integers of more than some 4,300 digits in decimal.
_WRITTEN_BITS: Final = 1024
_MAX_NODES: Final = 10_000
_CUT: Final = "<too deep>"
# Fewer nodes than the bound of the depth can't nest too deep. A character takes six bytes at most
# (an escape), a number, a brace or a comma 32 a node.
_SMALL_NODES: Final = MAX_RAW_DEPTH - 1
_SMALL_LETTERS: Final = (MAX_RAW_BYTES - 32 * MAX_RAW_DEPTH) // 6
_OTHER_SCALARS: Final = frozenset({bool, int, float, type(None)})


class Json(NamedTuple):
    """A value as JSON.

    Attributes:
        value: the value in types that JSON has; `MISSING` when there is none.
        data: bytes of its canonical text; of an outcome they may be left out (`outcome_json`).
        oversize: over the wire's bounds for raw values (256 KiB, depth 128); it counts by all of
            its bytes then, and does not travel.
    """

    value: Any
    data: bytes
    oversize: bool = False

    @property
    def given(self) -> bool:
        """Whether there is a value at all."""
        return self.value is not MISSING


NOTHING: Final = Json(MISSING, canonical_bytes(MISSING))


def to_json(value: object) -> Json:
    """Read any Python value as JSON; never raises."""
    if value is MISSING:
        return NOTHING
    try:
        data = canonical_bytes(value)
    except Exception:  # noqa: BLE001 - a value may be of any class, and its methods may do anything
        return _spelled_out(value)
    return Json(value, data, _is_oversize(data, value))


def outcome_json(value: object) -> Json:
    """As `to_json`; ``data`` is left empty where ``oversize`` is seen to be False without it.

    Of an outcome only some parts are hashed, and those by the rules of its tool.
    """
    if value is MISSING:
        return NOTHING
    return Json(value, b"") if _is_small(value) else to_json(value)


def _is_small(value: object) -> bool:
    """True only for values of JSON's very types that are surely within the wire's bounds."""
    nodes: list[Any] = [value]
    letters = 0
    for node in nodes:
        kind = type(node)
        if kind is str:
            letters += len(node)
        elif kind is dict:
            for key, item in node.items():
                if type(key) is not str:
                    return False
                letters += len(key)
                nodes.append(item)
        elif kind is list:
            nodes.extend(node[:_SMALL_NODES])
        elif kind not in _OTHER_SCALARS:
            return False
        if len(nodes) > _SMALL_NODES:
            return False
    return letters <= _SMALL_LETTERS


def json_text(value: Json) -> str:
    """The value as JSON text, its numbers as they were given.

    Raises:
        ValueError: a number that Python refuses to write.
    """
    return _ENCODER.encode(value.value)


def _spelled_out(value: object) -> Json:
    """Read a value that is not all of JSON's types."""
    try:
        plain = json.loads(_ENCODER.encode(value))
        data = canonical_bytes(plain)
    except Exception:  # noqa: BLE001 - as above
        return _salvaged(value)
    return Json(plain, data, _is_oversize(data, plain))


def _is_oversize(data: bytes, value: object) -> bool:
    if len(data) > MAX_RAW_BYTES:
        return True
    if len(data) <= MAX_RAW_DEPTH:
        return False
    return data.count(b"{") + data.count(b"[") > MAX_RAW_DEPTH and _is_deep(value)


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
    """What can be read of a value that can't be read as it is."""
    rescue = _Rescue()
    try:
        plain = rescue.read(value, 0)
        data = canonical_bytes(plain)
    except Exception:  # noqa: BLE001 - as in to_json; also a stack that is nearly full
        plain = _type_name(value)
        data = canonical_bytes(plain)
    return Json(plain, data, rescue.cut or _is_oversize(data, plain))


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
