"""Bounds on what strangers may send. Checked before or while parsing, never after."""

from __future__ import annotations

from typing import Final

MAX_RECORD_BYTES: Final = 1024 * 1024
MAX_EVENTS_PER_FRAME: Final = 4096
# An event without its raw values.
MAX_EVENT_BYTES: Final = 64 * 1024
MAX_EVENT_DEPTH: Final = 8
# Raw arguments, results and errors, as JSON text. Above: the digest of the bytes, flag `oversize`.
MAX_RAW_BYTES: Final = 256 * 1024
MAX_RAW_DEPTH: Final = 128
MAX_VERDICT_BYTES: Final = 256 * 1024
