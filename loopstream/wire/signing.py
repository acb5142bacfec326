"""Signed records: events by the runner that reports them, verdicts by the workers.

A signature is HMAC-SHA-256 over a purpose and the record's value, byte for byte. It travels in
the record's headers and is checked before anything of the value is parsed.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from loopstream.events import RejectCode
from loopstream.events.base import MAX_ID
from loopstream.wire.codec import (
    CONTENT_TYPE,
    FRAME_TYPE,
    WHOLE_RECORD,
    Decoded,
    Reject,
    decode_record,
)
from loopstream.wire.keys import IssuedKey, MasterKey
from loopstream.wire.limits import MAX_RECORD_BYTES

SIGNATURE: Final = "signature"
"""Header of a signed record: 32 bytes."""
KEY_ID: Final = "key-id"
"""Header that names the master key behind the signature, in ASCII."""
SIGNER: Final = "signer"
"""Header of an events record that names the runner who signed it, in UTF-8."""
WORKER: Final = ""
"""Signer of what workers write into the events."""

Headers = list[tuple[str, bytes]]

_RECORD: Final = b"loopstream record 1\0"
_VERDICT: Final = b"loopstream verdict 1\0"
_MAX_SIGNER_BYTES: Final = 4 * MAX_ID


def record_headers(key: IssuedKey, signer: str, value: bytes) -> Headers:
    """Headers that sign a record of the events topic."""
    signature = hmac.digest(key.secret, _RECORD + value, "sha256")
    return [(SIGNATURE, signature), (SIGNER, signer.encode()), (KEY_ID, key.id.encode())]


def verdict_headers(key: IssuedKey, scope: str, value: bytes) -> Headers:
    """Headers that sign a verdict on a run of the runner that was issued ``key``."""
    return [
        (SIGNATURE, _sign_verdict(key, scope, value)),
        (KEY_ID, key.id.encode()),
    ]


def own_headers(keys: Sequence[MasterKey], value: bytes) -> Headers:
    """Headers of a frame that a worker writes into the events: signed if there are keys."""
    headers = [(CONTENT_TYPE, FRAME_TYPE)]
    return headers + record_headers(keys[0].worker(), WORKER, value) if keys else headers


def is_signed_verdict(
    keys: Iterable[IssuedKey],
    scope: str,
    value: bytes,
    key_id: bytes | None,
    signature: bytes | None,
) -> bool:
    """Whether a verdict's record was signed with one of a runner's keys, for this very run."""
    return signature is not None and any(
        key.id.encode() == key_id
        and hmac.compare_digest(_sign_verdict(key, scope, value), signature)
        for key in keys
    )


class BadSignatureError(Exception):
    """A record is not signed as it must be; ``detail`` is in our words."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Verifier:
    """Checks who signed the records of the events topic.

    Attributes:
        keys: any of them may be behind a signature.
        required: a record without a signature is refused; else it counts as it always did.
    """

    keys: tuple[MasterKey, ...]
    required: bool = True

    def signer(self, value: bytes, headers: Sequence[tuple[str, bytes]]) -> str | None:
        """Who signed a record: a runner's id or `WORKER`; None if nobody did.

        Raises:
            BadSignatureError: there is no signature where one is required, or it is wrong.
        """
        told = {name: data for name, data in headers if name in (SIGNATURE, SIGNER, KEY_ID)}
        signature = told.get(SIGNATURE)
        if signature is None:
            if self.required:
                raise BadSignatureError("no signature")
            return None
        signer = _signer(told.get(SIGNER))
        key_id = told.get(KEY_ID)
        for key in self.keys:
            if key.id.encode() == key_id:
                break
        else:
            raise BadSignatureError("unknown key-id")
        issued = key.worker() if signer == WORKER else key.issue(signer)
        made = hmac.digest(issued.secret, _RECORD + value, "sha256")
        if not hmac.compare_digest(made, signature):
            raise BadSignatureError("wrong signature")
        return signer


def open_record(
    value: bytes | None,
    headers: Sequence[tuple[str, bytes]],
    verifier: Verifier | None = None,
) -> Decoded:
    """Decode a record of the events topic, checking its signature first; never raises.

    A record whose signature is not as it must be is refused whole, and nothing of it is parsed.
    """
    content_type = None
    for name, data in headers:
        if name == CONTENT_TYPE:
            content_type = data
    if verifier is None or value is None or len(value) > MAX_RECORD_BYTES:
        return decode_record(value, content_type)
    try:
        signer = verifier.signer(value, headers)
    except BadSignatureError as bad:
        reject = Reject(WHOLE_RECORD, RejectCode.BAD_SIGNATURE, bad.detail)
        return Decoded(rejects=[reject])
    decoded = decode_record(value, content_type)
    decoded.signer = signer
    return decoded


def _signer(name: bytes | None) -> str:
    try:
        signer = None if name is None or len(name) > _MAX_SIGNER_BYTES else name.decode()
    except UnicodeDecodeError:
        signer = None
    if signer is None or len(signer) > MAX_ID:
        raise BadSignatureError("signer is missing or malformed")
    return signer


def _sign_verdict(key: IssuedKey, scope: str, value: bytes) -> bytes:
    return hmac.digest(key.run_key(scope), _VERDICT + value, "sha256")
