"""How a runner behaves: everything but where Kafka is."""

from __future__ import annotations

import hmac
import os
import secrets
import socket
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Final, Literal

from loopstream.errors import SettingsError
from loopstream.sdk.capture import CAPTURES, Capture, Redact, mask_secrets
from loopstream.sdk.names import bounded_id
from loopstream.sdk.prints import PROFILES, Printer
from loopstream.wire.keys import MAX_KEYS_BYTES, IssuedKey, read_issued_keys
from loopstream.wire.signing import Headers, record_headers

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
    signing_keys: tuple[IssuedKey, ...] = ()
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
        named = not self.signing_keys or bool(self.runner)
        _require(named, "signing_key", "is issued to one runner: give its id as runner")
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

    def headers(self, value: bytes) -> Headers:
        """Headers of a record of the events topic: they sign it if the runner was issued a key."""
        keys = self.signing_keys
        return record_headers(keys[0], self.runner_id, value) if keys else []

    def printer(self) -> Printer:
        """Makes fingerprints for these settings."""
        return Printer(self.profiles, self.key, self.key_id or key_name(self.key))


def issued_keys(given: str | PathLike[str] | None) -> tuple[IssuedKey, ...]:
    """The keys that a runner was issued, as text or in a file.

    Raises:
        SettingsError: they are malformed, or the file can't be read.
    """
    if given is None or isinstance(given, str):
        return () if given is None else read_issued_keys(given, "signing_key")
    path = Path(given)
    try:
        with path.open(encoding="ascii", errors="replace") as file:
            text = file.read(MAX_KEYS_BYTES + 1)
    except OSError as error:
        message = f"can't be read: {error.strerror}."
        raise SettingsError(message, where=f"signing_key {path}") from None
    return read_issued_keys(text, f"signing_key {path}")


def key_name(key: bytes | None) -> str | None:
    """A name for a key that tells nothing about it: the same key always has the same name."""
    return None if key is None else hmac.digest(key, b"loopstream key id", "sha256").hex()[:16]


def new_runner_id() -> str:
    """Host, process and a random part: no two processes share it, not even after a restart."""
    return bounded_id(f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}")


def _require(holds: bool, setting: str, rule: str) -> None:
    if not holds:
        raise SettingsError(f"{setting} {rule}.", where=setting)
