"""``--since`` and ``--until``: a time or an offset."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from loopstream.errors import UsageError

_UNITS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_RELATIVE: Final = re.compile(r"^-?(\d{1,9})([smhd])$")
_EPOCH_MS: Final = re.compile(r"^\d{12,14}$")
_OFFSET: Final = re.compile(r"^@(\d{1,18})$")
HINT: Final = "Take 2026-11-30T03:12, a Unix time in ms, 90m (ago), or @OFFSET."


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in the log: an append time in milliseconds, or an offset in each partition."""

    millis: int | None = None
    offset: int | None = None


def parse_moment(text: str, now_ms: int) -> Moment:
    """Read a moment as people write it; a time without a zone is UTC.

    Raises:
        UsageError: it is neither a time nor an offset.
    """
    text = text.strip()
    if match := _OFFSET.match(text):
        return Moment(offset=int(match[1]))
    if match := _RELATIVE.match(text):
        return Moment(millis=now_ms - int(match[1]) * _UNITS[match[2]])
    if _EPOCH_MS.match(text):
        return Moment(millis=int(text))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text}: neither a time nor an offset.", hint=HINT) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return Moment(millis=int(moment.timestamp() * 1000))
