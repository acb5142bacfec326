"""An open loop: load arrives at its rate, whether or not the other side keeps up."""

from __future__ import annotations

import time
from collections.abc import Iterator

TICK_S = 0.001


def paced(rate: float, seconds: float) -> Iterator[int]:
    """How many are due, again and again until the time is up; sleeps in between.

    Args:
        rate: per second.
        seconds: how long.
    """
    began = time.monotonic()
    sent = 0
    while (passed := time.monotonic() - began) < seconds:
        due = int(passed * rate) - sent
        if due > 0:
            yield due
            sent += due
        else:
            time.sleep(TICK_S)
