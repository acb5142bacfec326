"""Fingerprints at the edge, as the wire's dictionaries: what leaves the runner for sure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from loopstream.events.text import short_name
from loopstream.fingerprint.calls import fingerprint_call
from loopstream.fingerprint.canonical import MISSING, digest
from loopstream.fingerprint.outcomes import (
    OutcomeKind,
    OutcomePrint,
    fingerprint_outcome,
    parse_result,
    result_text,
)
from loopstream.fingerprint.profiles import DOCUMENTED, REFERENCE
from loopstream.sdk.values import NOTHING, Json

Fields = dict[str, Any]

_FIELD: Final = {DOCUMENTED: "documented", REFERENCE: "reference"}
PROFILES: Final = tuple(_FIELD)
_SENT_KINDS: Final = (OutcomeKind.TERMINAL_EXEC_FAILURE, OutcomeKind.VETO)


@dataclass(frozen=True, slots=True)
class Printer:
    """Makes the ``fp`` of events for the profiles that a deployment asks for.

    Attributes:
        profiles: names of `PROFILES`.
        key: the tenant's key; without one digests are plain SHA-256.
        key_id: its name.
    """

    profiles: tuple[str, ...]
    key: bytes | None = None
    key_id: str | None = None

    def call(self, tool: str, args: Json) -> tuple[Fields, bytes]:
        """A call's ``fp``, and the digest of its arguments."""
        made = fingerprint_call(tool, _looked_at(args), self.key)
        args_digest = self._bytes_digest(args) if args.oversize else made.args
        digests: Fields = {"args": args_digest}
        if made.poll:
            digests["poll"] = True
        return self._block(dict.fromkeys(self.profiles, digests)), args_digest

    def outcome(
        self, tool: str, args: Json, result: Json = NOTHING, error: Json = NOTHING
    ) -> Fields:
        """An outcome's ``fp``; an error wins over a result given with it."""
        return self._block(
            {
                profile: _wire(self._outcome(profile, tool, args, result, error))
                for profile in self.profiles
            }
        )

    def _outcome(
        self, profile: str, tool: str, args: Json, result: Json, error: Json
    ) -> OutcomePrint:
        counted = result if error.value is MISSING else error
        if counted.oversize:
            made = self._oversize(profile, tool, args, counted, counted is error)
        else:
            made = fingerprint_outcome(
                tool,
                _looked_at(args),
                result=result.value if counted is result else MISSING,
                error=error.value,
                profile=profile,
                key=self.key,
            )
        return made._replace(args=self._bytes_digest(args)) if args.oversize else made

    def _oversize(
        self, profile: str, tool: str, args: Json, counted: Json, failed: bool
    ) -> OutcomePrint:
        call = fingerprint_call(tool, _looked_at(args), self.key)
        text = result_text(self._bytes_digest(counted), failed)
        return OutcomePrint(*call, result=text, no_progress=failed and profile == REFERENCE)

    def _bytes_digest(self, value: Json) -> bytes:
        return digest(value.encoded(), self.key)

    def _block(self, by_profile: dict[str, Fields]) -> Fields:
        fields: Fields = {"v": 1}
        if self.key_id is not None:
            fields["key_id"] = self.key_id
        for profile, digests in by_profile.items():
            fields[_FIELD[profile]] = digests
        return fields


def _looked_at(args: Json) -> object:
    """What rules look into: the arguments, or of oversize ones the part that tells a poll."""
    if not args.oversize:
        return args.value
    action = args.value.get("action") if isinstance(args.value, dict) else None
    return {"action": action} if isinstance(action, str) else MISSING


def _wire(made: OutcomePrint) -> Fields:
    fields: Fields = {"args": made.args}
    if made.poll:
        fields["poll"] = True
    if made.result is not None:
        fields["result"], failed = parse_result(made.result)
        if failed:
            fields["failed"] = True
    if made.unknown_tool is not None:
        fields["unknown_tool"] = short_name(made.unknown_tool)
    if made.kind in _SENT_KINDS:
        fields["kind"] = str(made.kind)
    if made.no_progress:
        fields["no_progress"] = True
    if made.failure is not None:
        fields["failure"] = made.failure
    return fields
