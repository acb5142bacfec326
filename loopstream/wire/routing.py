"""Scope keys and partitions: which run an event counts for, and where it must travel."""

from __future__ import annotations

from typing import Final

from loopstream.events.text import trim

NO_RUN_PREFIX: Final = "\0"
_M: Final = 0x5BD1E995
_SEED: Final = 0x9747B28C
_MASK: Final = 0xFFFFFFFF


def scope_key(run: str | None, session: str | None) -> str | None:
    """The key that an event's history is kept under.

    Returns:
        The trimmed run id; for a blank one NUL plus the session id (the session's "no run"
        scope); None if there is neither, or if the run id starts with NUL itself: it would
        pass for a session.
    """
    if run is not None:
        trimmed = trim(run)
        if trimmed:
            return None if trimmed.startswith(NO_RUN_PREFIX) else trimmed
    return NO_RUN_PREFIX + session if session is not None else None


def partition_of(key: str, partitions: int) -> int:
    """The partition that Kafka's default partitioner gives to ``key`` (UTF-8)."""
    return (murmur2(key.encode()) & 0x7FFFFFFF) % partitions


def murmur2(data: bytes) -> int:
    """Kafka's 32-bit murmur2, unsigned (``org.apache.kafka.common.utils.Utils.murmur2``)."""
    length = len(data)
    value = _SEED ^ length
    whole = length & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _M & _MASK
        word = (word ^ word >> 24) * _M & _MASK
        value = value * _M & _MASK ^ word
    if length > whole:
        value = (value ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    value = (value ^ value >> 13) * _M & _MASK
    return value ^ value >> 15
