"""Announcing a warning only now and then (SEMANTICS section 8)."""

from __future__ import annotations

import hashlib
from typing import Final

from loopstream.policy.deployment import Announce
from loopstream.state.run import THROTTLE_KEYS

# Fixed in the reference, not a setting.
_BUCKET: Final = 10


def announce(
    throttle: dict[bytes, int], run: str | None, warning_key: str, count: int, how: Announce
) -> bool:
    """Decide whether a warning is announced, and remember that it was.

    Args:
        throttle: buckets announced last by key; changed in place, at most 256 keys, the oldest
            inserted dropped first.
        run: the run id as the event spelled it, not trimmed.
        how: ``reference`` announces when count div 10 rises, so never below 10; ``first`` also
            announces the first warning of a key.
    """
    key = _key(run, warning_key)
    bucket = count // _BUCKET
    announced = throttle.get(key)
    if announced is None:
        if bucket == 0 and how == "reference":
            return False
        if len(throttle) >= THROTTLE_KEYS:
            del throttle[next(iter(throttle))]
    elif bucket <= announced:
        return False
    throttle[key] = bucket
    return True


def _key(run: str | None, warning_key: str) -> bytes:
    """A digest of 16 bytes in place of the text: rows stay small."""
    text = f"{run}:{warning_key}" if run else warning_key
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]
