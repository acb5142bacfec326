"""Verdicts and dead letters as record values: msgpack, or JSON by setting; decoded under bounds."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeVar

import msgpack
from pydantic import ValidationError

from loopstream.errors import DataError
from loopstream.events import DeadLetter, Verdict
from loopstream.events.base import Model
from loopstream.wire.codec import is_json
from loopstream.wire.limits import MAX_VERDICT_BYTES

Format = Literal["msgpack", "json"]
M = TypeVar("M", bound=Model)
_MAX_ITEMS: Final = 4096
_MAX_FIELDS: Final = 256
_HINT: Final = "Is something else writing to this topic?"


def encode_model(value: Model, form: Format = "msgpack") -> bytes:
    """One verdict or dead letter as a record value; the same value gives the same bytes."""
    if form == "json":
        return value.model_dump_json(exclude_none=True, by_alias=True).encode()
    fields = value.model_dump(exclude_none=True, by_alias=True, mode="python")
    return bytes(msgpack.packb(fields))


def decode_verdict(value: bytes | None, content_type: bytes | None = None) -> Verdict:
    """Decode a record of the verdict topic.

    Raises:
        DataError: the bytes are no verdict.
    """
    return _decode(Verdict, value, content_type)


def decode_dead_letter(value: bytes | None, content_type: bytes | None = None) -> DeadLetter:
    """Decode a record of the dead-letter topic.

    Raises:
        DataError: the bytes are no dead letter.
    """
    return _decode(DeadLetter, value, content_type)


def _decode(model: type[M], value: bytes | None, content_type: bytes | None) -> M:
    name = model.__name__
    if value is None or len(value) > MAX_VERDICT_BYTES:
        raise DataError(f"{name}: no value, or over {MAX_VERDICT_BYTES} bytes.", hint=_HINT)
    try:
        if is_json(value, content_type):
            return model.model_validate_json(value)
        return model.model_validate(_unpack(value), strict=False)
    except (ValidationError, ValueError) as error:
        raise DataError(f"not a {name}: {type(error).__name__}.", hint=_HINT) from None


def _unpack(value: bytes) -> Any:
    try:
        # The length bounds refuse lies about sizes before memory is set aside for them.
        return msgpack.unpackb(
            value,
            raw=False,
            strict_map_key=True,
            max_array_len=_MAX_ITEMS,
            max_map_len=_MAX_FIELDS,
            max_ext_len=0,
        )
    except Exception as error:  # noqa: BLE001 - msgpack raises several unrelated kinds
        raise ValueError(type(error).__name__) from None
