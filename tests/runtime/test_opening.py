"""Where a partition starts."""

from __future__ import annotations

import pytest

from loopstream.runtime.opening import Start


@pytest.mark.parametrize(
    ("committed", "sealed", "earliest", "offset"),
    [
        pytest.param(None, None, 0, 0, id="fresh"),
        pytest.param(40, 39, 0, 40, id="as committed"),
        pytest.param(40, 59, 0, 40, id="a crash before the commit: replay, rows skip"),
        pytest.param(None, 59, 0, 60, id="a commit that is not told: not from the beginning"),
        pytest.param(None, 59, 80, 80, id="retention has passed the seal"),
        pytest.param(None, -1, 0, 0, id="sealed before any event"),
    ],
)
def test_the_first_offset(
    committed: int | None, sealed: int | None, earliest: int, offset: int
) -> None:
    assert Start(0, committed, earliest, 0, sealed).offset == offset
