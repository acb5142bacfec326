from __future__ import annotations

import pytest

from loopstream.detect.base import DetectorName
from loopstream.events.verdict import Level
from loopstream.policy.reasons import _text


@pytest.mark.parametrize("level", [Level.WARNING, Level.CRITICAL])
@pytest.mark.parametrize(
    ("paired", "begin"),
    [
        ("write", "read and write alternate for 20 calls"),
        ("read", "Two different calls of read alternate for 20 calls"),
        (None, "Two different calls of read alternate for 20 calls"),
    ],
)
def test_who_alternates_is_told_apart(level: Level, paired: str | None, begin: str) -> None:
    assert _text(DetectorName.PING_PONG, level, "read", paired, 20).startswith(begin)
