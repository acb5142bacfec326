"""The keys that records are signed with: master keys, and what of them a runner is issued.

All are derived (HKDF-SHA-256, RFC 5869): workers hold the master keys, a runner holds the key of
its id, and each run has one of its own. So a runner can sign what its runs report and check the
verdicts on them, and can do neither for another runner's.

As text a key is a line ``id:hex``; the first of several signs, all of them verify.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from loopstream.errors import SettingsError

KEY_BYTES: Final = 32
"""Length of a derived key."""
MIN_KEY_BYTES: Final = 32
MAX_KEY_BYTES: Final = 4096
MAX_KEYS: Final = 16
MAX_KEYS_BYTES: Final = MAX_KEYS * (2 * MAX_KEY_BYTES + 256)

_SALT: Final = b"\0" * 32
_RUNNER: Final = b"loopstream runner 1\0"
_WORKER: Final = b"loopstream worker 1\0"
_RUN: Final = b"loopstream run 1\0"
_NAME: Final = b"loopstream master key id"
_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,32}")
_TEXT: Final = re.compile(rb"[\t\n\r\x20-\x7e]+")
_LINE: Final = "Each line is `id:hex`; make one with `loopstream keys new`."


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """The key of one runner, under the id of the master key that it was derived from."""

    id: str
    secret: bytes = field(repr=False)

    def run_key(self, scope: str) -> bytes:
        """The key of one of the runner's runs, 32 bytes."""
        return _derive(self.secret, _RUN + scope.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, slots=True)
class MasterKey:
    """A key of the whole deployment, held by its workers alone."""

    id: str
    secret: bytes = field(repr=False)

    def issue(self, runner: str) -> IssuedKey:
        """The key that the runner with this id is issued."""
        return IssuedKey(self.id, _derive(self.secret, _RUNNER + runner.encode()))

    def worker(self) -> IssuedKey:
        """The key of what workers write into the events."""
        return IssuedKey(self.id, _derive(self.secret, _WORKER))


def is_key_id(text: str) -> bool:
    """Whether a text may name a key: up to 32 letters, digits, dots, dashes or underscores."""
    return _ID.fullmatch(text) is not None


def key_line(key: MasterKey | IssuedKey) -> str:
    """The key as text."""
    return f"{key.id}:{key.secret.hex()}"


def read_master_keys(data: bytes, where: str) -> tuple[MasterKey, ...]:
    """Master keys as lines of text; or one key alone, which is all bytes but a last newline.

    A key alone has an id that is derived from it.

    Raises:
        SettingsError: ``data`` is neither; the message never shows any of it.
    """
    if _TEXT.fullmatch(data) and (data.startswith(b"#") or b":" in data):
        keys = [MasterKey(*line) for line in _lines(data.decode("ascii"), where)]
        return tuple(keys)
    secret = data.removesuffix(b"\n")
    _check(secret, where)
    return (MasterKey(hmac.digest(secret, _NAME, "sha256").hex()[:16], secret),)


def read_issued_keys(text: str, where: str) -> tuple[IssuedKey, ...]:
    """The keys of one runner, as ``loopstream keys issue`` writes them.

    Raises:
        SettingsError: they are malformed; the message never shows any of them.
    """
    if len(text) > MAX_KEYS_BYTES:
        raise SettingsError(f"is over {MAX_KEYS_BYTES} bytes.", where=where)
    keys = tuple(IssuedKey(*line) for line in _lines(text, where))
    if any(len(key.secret) != KEY_BYTES for key in keys):
        hint = "Issue one with `loopstream keys issue RUNNER`; master keys stay with the workers."
        raise SettingsError(f"an issued key has {KEY_BYTES} bytes.", where=where, hint=hint)
    return keys


def _lines(text: str, where: str) -> Iterator[tuple[str, bytes]]:
    """Ids and keys; blank lines and those that begin with ``#`` do not count."""
    seen: set[str] = set()
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        place = f"{where}, line {number}"
        name, secret = _parsed(line, place)
        if name in seen:
            raise SettingsError(f"a second key has the id {name}.", where=place, hint=_LINE)
        seen.add(name)
        if len(seen) > MAX_KEYS:
            raise SettingsError(f"more than {MAX_KEYS} keys.", where=place, hint="Drop old ones.")
        yield name, secret
    if not seen:
        raise SettingsError("there is no key in it.", where=where, hint=_LINE)


def _parsed(line: str, place: str) -> tuple[str, bytes]:
    name, colon, digits = (part.strip() for part in line.partition(":"))
    if not colon or not is_key_id(name):
        message = "no `id:hex`: an id is up to 32 letters, digits, dots, dashes or underscores."
        raise SettingsError(message, where=place, hint=_LINE)
    try:
        secret = bytes.fromhex(digits)
    except ValueError:
        message = f"the key {name} is not written in hexadecimal digits."
        raise SettingsError(message, where=place, hint=_LINE) from None
    _check(secret, place)
    return name, secret


def _check(secret: bytes, where: str) -> None:
    if not MIN_KEY_BYTES <= len(secret) <= MAX_KEY_BYTES:
        message = f"a key has {MIN_KEY_BYTES} to {MAX_KEY_BYTES} bytes, not {len(secret)}."
        hint = "`loopstream keys new` makes one of the right length."
        raise SettingsError(message, where=where, hint=hint)


# Runners come and go: what was derived for them is only a cache.
@lru_cache(maxsize=4096)
def _derive(secret: bytes, info: bytes) -> bytes:
    # One block of HKDF is all that 32 bytes take.
    pseudorandom = hmac.digest(_SALT, secret, hashlib.sha256)
    return hmac.digest(pseudorandom, info + b"\x01", hashlib.sha256)
