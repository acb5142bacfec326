"""Dead letters: an event that can't be used never stops the worker, and never silently vanishes."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from loopstream.events.base import Digest, Millis, Model


class RejectCode(StrEnum):
    """Why a record or event was refused. The same words in dead letters, metrics and docs."""

    NULL_VALUE = "null_value"
    OVERSIZE_RECORD = "oversize_record"
    BAD_SIGNATURE = "bad_signature"
    OVERSIZE_EVENT = "oversize_event"
    UNDECODABLE = "undecodable"
    TOO_DEEP = "too_deep"
    TOO_MANY_EVENTS = "too_many_events"
    UNKNOWN_TYPE = "unknown_type"
    UNKNOWN_VERSION = "unknown_version"
    INVALID = "invalid"
    RAW_UNDECODABLE = "raw_undecodable"
    RAW_UNDER_KEY = "raw_under_key"
    NO_SCOPE = "no_scope"
    MISROUTED = "misrouted"
    IDENTITY_MISMATCH = "identity_mismatch"
    NO_FINGERPRINT = "no_fingerprint"
    KEY_MISMATCH = "key_mismatch"
    FORGED_CONTROL = "forged_control"
    SETTINGS_REFUSED = "settings_refused"


class DeadLetter(Model):
    """Position, reason and digest of what was refused; never the payload, unless asked for."""

    v: Literal[1] = 1
    type: Literal["dead_letter"] = "dead_letter"
    code: RejectCode
    topic: Annotated[str, Field(max_length=249)]
    partition: int = Field(ge=0)
    offset: int = Field(ge=0)
    index: int = Field(ge=-1)
    """Place of the event within its frame; -1: the whole record."""
    detail: Annotated[str, Field(max_length=512)] | None = None
    """Which field, in our words; never what a stranger sent."""
    sha256: Digest
    """SHA-256 of the record's value."""
    append_time: Millis
    sample: Annotated[bytes, Field(max_length=4096)] | None = None
    """First bytes of the value; only with ``capture = full``."""
