"""Positions in the verdict topic as one word: what a browser has seen, told on a reconnect.

A word holds the next offset of each partition, so it means the same to any dashboard of the
prefix, after a restart too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

MAX_CURSOR: Final = 16 * 1024
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_MAX_DIGITS: Final = 13  # of 2**63 - 1


def encode(nexts: Sequence[int]) -> str:
    """Next offsets by partition as base-36 numbers, joined by dots."""
    return ".".join(map(_base36, nexts))


def decode(text: str | None, partitions: int) -> tuple[int, ...] | None:
    """What `encode` made; None if it is anything else, or of another number of partitions."""
    if text is None or len(text) > MAX_CURSOR:
        return None
    parts = text.split(".")
    if len(parts) != partitions or not all(map(_is_number, parts)):
        return None
    return tuple(int(part, 36) for part in parts)


def _is_number(part: str) -> bool:
    return 0 < len(part) <= _MAX_DIGITS and all(char in _DIGITS for char in part)


def _base36(number: int) -> str:
    text = ""
    while number or not text:
        number, digit = divmod(number, 36)
        text = _DIGITS[digit] + text
    return text
