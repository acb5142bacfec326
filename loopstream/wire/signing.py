"""Signed verdicts: a runner obeys only what a worker has signed for one of its own runs.

Keys are derived (HKDF-SHA-256, RFC 5869): the workers hold the master key, a runner holds the key
of its id, and each run has one of its own. So a runner can check the verdicts on its runs, and can
forge none for another runner's.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

SIGNATURE: Final = "signature"
"""Header of a signed record: 32 bytes."""
MIN_KEY_BYTES: Final = 32
KEY_BYTES: Final = 32

_SALT: Final = b"\0" * 32
_RUNNER: Final = b"loopstream runner 1\0"
_RUN: Final = b"loopstream run 1\0"
_VERDICT: Final = b"loopstream verdict 1\0"


def runner_key(master: bytes, runner: str) -> bytes:
    """The key that a runner with this id is issued, 32 bytes."""
    return _derive(master, _RUNNER + runner.encode("utf-8", "surrogatepass"))


def run_key(key: bytes, scope: str) -> bytes:
    """The key of one run of the runner that holds ``key``, 32 bytes."""
    return _derive(key, _RUN + scope.encode("utf-8", "surrogatepass"))


def sign_verdict(key: bytes, value: bytes) -> bytes:
    """Signature of a verdict's record value with its run's key."""
    return hmac.digest(key, _VERDICT + value, "sha256")


def is_signed(key: bytes, value: bytes, signature: bytes | None) -> bool:
    """Whether a verdict's record value has the signature of its run's key."""
    return signature is not None and hmac.compare_digest(sign_verdict(key, value), signature)


def _derive(secret: bytes, info: bytes) -> bytes:
    # One block of HKDF is all that 32 bytes take.
    pseudorandom = hmac.digest(_SALT, secret, hashlib.sha256)
    return hmac.digest(pseudorandom, info + b"\x01", hashlib.sha256)
