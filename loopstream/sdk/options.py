"""How a runner behaves: everything but where Kafka is."""

from __future__ import annotations

import hmac
import os
import secrets
import socket
from dataclasses import dataclass, field
from typing import Final, Literal

from loopstream.errors import SettingsError
from loopstream.sdk.capture import CAPTURES, Capture, Redact, mask_secrets
from loopstream.sdk.names import bounded_id
from loopstream.sdk.prints import PROFILES, Printer
from loopstream.wire.signing import KEY_BYTES

Fail = Literal["open", "closed"]

MIN_BUFFER_BYTES: Final = 64 * 1024
MIN_KEY_BYTES: Final = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """A runner's settings; `Runner` says what they mean.

    Raises:
        SettingsError: one of them makes no sense.
    """

    agent: str | None = None
    prefix: str = "loopstream"
    runner: str = ""
    session: str | None = None
    key: bytes | None = field(default=None, repr=False)
    key_id: str | None = None
    verdict_key: bytes | None = field(default=None, repr=False)
    capture: Capture = "digests"
    redact: Redact | None = mask_secrets
    profiles: tuple[str, ...] = ("documented",)
    normalize_tools: bool = True
    linger_ms: float = 10.0
    max_buffer_bytes: int = 16 * 1024 * 1024
    max_buffer_events: int = 100_000
    wait: float = 0.0
    fail: Fail = "open"

    def __post_init__(self) -> None:
        _require(self.capture in CAPTURES, "capture", f"is one of {', '.join(CAPTURES)}")
        _require(self.fail in {"open", "closed"}, "fail", "is open or closed")
        _require(bool(self.profiles), "profiles", "names at least one profile")
        known = set(self.profiles) <= set(PROFILES)
        _require(known, "profiles", f"are of {', '.join(PROFILES)}")
        long_enough = self.key is None or len(self.key) >= MIN_KEY_BYTES
        _require(long_enough, "key", f"has at least {MIN_KEY_BYTES} bytes")
        signed = self.verdict_key is None or len(self.verdict_key) == KEY_BYTES
        _require(signed, "verdict_key", f"has {KEY_BYTES} bytes")
        _require(self.key_id is None or self.key is not None, "key_id", "names a key")
        _require(0 <= self.linger_ms <= 10_000, "linger_ms", "is between 0 and 10000")
        enough = self.max_buffer_bytes >= MIN_BUFFER_BYTES
        _require(enough, "max_buffer_bytes", f"is at least {MIN_BUFFER_BYTES}")
        _require(self.max_buffer_events >= 1, "max_buffer_events", "is at least 1")
        _require(self.wait >= 0, "wait", "is a number of seconds")

    @property
    def runner_id(self) -> str:
        """The runner's id within the wire's bounds."""
        return bounded_id(self.runner)

    def printer(self) -> Printer:
        """Makes fingerprints for these settings."""
        return Printer(self.profiles, self.key, self.key_id or key_name(self.key))


def key_name(key: bytes | None) -> str | None:
    """A name for a key that tells nothing about it: the same key always has the same name."""
    return None if key is None else hmac.digest(key, b"loopstream key id", "sha256").hex()[:16]


def new_runner_id() -> str:
    """Host, process and a random part: no two processes share it, not even after a restart."""
    return bounded_id(f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}")


def _require(holds: bool, setting: str, rule: str) -> None:
    if not holds:
        raise SettingsError(f"{setting} {rule}.", where=setting)
