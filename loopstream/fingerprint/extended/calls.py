"""Fingerprint of a call for profile ``extended``."""

from __future__ import annotations

from typing import Final, NamedTuple

from loopstream.events.tool import ExtendedCall
from loopstream.fingerprint.calls import is_poll
from loopstream.fingerprint.canonical import MISSING, canonical_bytes, digest
from loopstream.fingerprint.extended.effects import look_at
from loopstream.fingerprint.extended.normal import decoded, masked_args
from loopstream.fingerprint.extended.sketch import leaves_of, words_of

SHORT: Final = 8
MESSAGE_TOOL: Final = "__message__"


def extended_call(tool: str, args: object, key: bytes | None = None) -> ExtendedCall:
    """What may leave the runner of a call; ``args`` is `MISSING` when it has none.

    Without volatile parts the masked digest is that of the exact arguments, and left out. About
    60 us for short arguments.

    Raises:
        TypeError: the arguments have no JSON form.
    """
    given, masked, exact_digest, masked_digest = _digests(args, key)
    sight = look_at(tool, given)
    flat = {} if masked is MISSING else masked
    return ExtendedCall.model_construct(
        args=exact_digest,
        masked=masked_digest,
        leaves=leaves_of(flat, key),
        words=words_of(flat, key),
        poll=is_poll(tool, given),
        effect=sight.effect,
        resource=short(sight.resource, key),
        subject=None if sight.subject == sight.resource else short(sight.subject, key),
        server=short(sight.server, key),
    )


class Mark(NamedTuple):
    """What an outcome needs to know of its call: the digests, and whether the call sends."""

    args: bytes
    masked: bytes | None
    sends: bool


def mark_of(tool: str, args: object, key: bytes | None = None) -> Mark:
    """The mark of a call that was not fingerprinted here."""
    given, _, exact, masked = _digests(args, key)
    return Mark(exact, masked, look_at(tool, given).effect == "send")


def _digests(args: object, key: bytes | None) -> tuple[object, object, bytes, bytes | None]:
    given = decoded(args)
    exact, masked = canonical_bytes(given), masked_args(given)
    shape = canonical_bytes(masked)
    masked_digest = None if shape == exact else digest(shape, key)
    return given, masked, digest(exact, key), masked_digest


def oversize_call(tool: str, args_digest: bytes, known: object) -> ExtendedCall:
    """Of arguments over the bounds only the digest of their bytes is known, and if it polls."""
    return ExtendedCall.model_construct(args=args_digest, poll=is_poll(tool, known))


def short(text: str | None, key: bytes | None) -> bytes | None:
    """Eight bytes of a text's digest: enough to tell things of one run apart."""
    if text is None:
        return None
    return digest(text.encode("utf-8", "surrogatepass"), key)[:SHORT]
