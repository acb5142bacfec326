"""Fingerprints at the edge, as the wire's dictionaries: what leaves the runner for sure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from loopstream.events.text import short_name
from loopstream.events.tool import ExtendedCall
from loopstream.fingerprint.calls import CallPrint, is_poll
from loopstream.fingerprint.canonical import MISSING, digest
from loopstream.fingerprint.extended.calls import Mark, extended_call, oversize_call
from loopstream.fingerprint.extended.outcomes import outcome_of, oversize_outcome
from loopstream.fingerprint.outcomes import (
    OutcomeKind,
    OutcomePrint,
    fingerprint_outcome,
)
from loopstream.fingerprint.profiles import DOCUMENTED, EXTENDED, REFERENCE
from loopstream.sdk.values import NOTHING, Json

Fields = dict[str, Any]

_FIELD: Final = {DOCUMENTED: "documented", REFERENCE: "reference", EXTENDED: EXTENDED}
PROFILES: Final = tuple(_FIELD)
_SENT_KINDS: Final = (OutcomeKind.TERMINAL_EXEC_FAILURE, OutcomeKind.VETO)


class Asked(NamedTuple):
    """What outcomes need to know of their call.

    Attributes:
        args: digest of the arguments.
        poll: the call is a status poll.
        seen: what rules look at in the arguments: their action, which tells polls and sends.
    """

    args: bytes
    poll: bool
    seen: object
    mark: Mark | None = None
    """Profile ``extended`` only."""
    signed: bytes = b""
    """What the call's signature is made of: for profile ``extended`` the masked arguments."""


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

    def call(self, tool: str, args: Json) -> tuple[Asked, Fields]:
        """A call's fingerprint and its ``fp``."""
        exact = digest(args.data, self.key)
        poll = is_poll(tool, args.value)
        digests: Fields = {"args": exact, "poll": True} if poll else {"args": exact}
        fields = self._head()
        for profile in self.profiles:
            fields[_FIELD[profile]] = digests
        mark, signed = None, exact
        if EXTENDED in self.profiles:
            made = self._extended_call(tool, args, exact)
            fields[_FIELD[EXTENDED]] = made.model_dump(exclude_defaults=True)
            mark = Mark(made.args, made.masked, made.effect == "send")
            if self.profiles[0] == EXTENDED:
                signed = made.masked or made.args
        return Asked(exact, poll, _seen(args.value), mark, signed), fields

    def _extended_call(self, tool: str, args: Json, exact: bytes) -> ExtendedCall:
        if args.oversize:
            return oversize_call(tool, exact, args.value)
        return extended_call(tool, args.value, self.key)

    def outcome(
        self, tool: str, asked: Asked, result: Json = NOTHING, error: Json = NOTHING
    ) -> Fields:
        """An outcome's ``fp``; an error wins over a result given with it."""
        fields = self._head()
        for profile in self.profiles:
            fields[_FIELD[profile]] = (
                self._extended_outcome(asked.mark, result, error)
                if profile == EXTENDED and asked.mark is not None
                else _wire(self._outcome(profile, tool, asked, result, error))
            )
        return fields

    def _extended_outcome(self, mark: Mark, result: Json, error: Json) -> Fields:
        counted = error if error.given else result
        if counted.oversize:
            value = digest(counted.data, self.key)
            made = oversize_outcome(mark, value, failed=error.given)
        else:
            shown = _with_list(result.value)
            made = outcome_of(mark, result=shown, error=error.value, key=self.key)
        if made.unknown_tool is not None:
            made = made.model_copy(update={"unknown_tool": short_name(made.unknown_tool)})
        return made.model_dump(exclude_defaults=True)

    def _outcome(
        self, profile: str, tool: str, asked: Asked, result: Json, error: Json
    ) -> OutcomePrint:
        counted = error if error.given else result
        if counted.oversize:
            failed, value = error.given, digest(counted.data, self.key)
            stuck = failed and profile == REFERENCE
            return OutcomePrint(asked.args, asked.poll, value, failed, no_progress=stuck)
        return fingerprint_outcome(
            tool,
            asked.seen,
            result=_with_list(result.value),
            error=error.value,
            profile=profile,
            key=self.key,
            call=CallPrint(asked.args, asked.poll),
        )

    def _head(self) -> Fields:
        """An ``fp`` without its digests."""
        return {"v": 1} if self.key_id is None else {"v": 1, "key_id": self.key_id}


def _seen(args: object) -> object:
    """A copy of what rules look at: tools may change what they are given."""
    action = args.get("action") if isinstance(args, dict) else None
    return {"action": action} if isinstance(action, str) else MISSING


def _with_list(result: object) -> object:
    """A result whose content is a list, where Python had a tuple."""
    if isinstance(result, dict) and isinstance(result.get("content"), tuple):
        return {**result, "content": list(result["content"])}
    return result


def _wire(made: OutcomePrint) -> Fields:
    fields: Fields = {"args": made.args}
    if made.poll:
        fields["poll"] = True
    if made.digest is not None:
        fields["result"] = made.digest
        if made.failed:
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
