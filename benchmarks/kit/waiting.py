"""Waiting for what other processes do."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_for(
    what: str, holds: Callable[[], bool], timeout_s: float = 120.0, every_s: float = 0.02
) -> None:
    """Poll until a condition holds.

    Raises:
        TimeoutError: it did not in time; names ``what``.
    """
    deadline = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {timeout_s:g} s")
        time.sleep(every_s)
