"""Fingerprints as they stand on the wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from loopstream.events.making import trusted
from loopstream.events.text import short_name
from loopstream.events.tool import CallDigests, OutcomeDigests, RecordKind
from loopstream.fingerprint.calls import CallPrint
from loopstream.fingerprint.outcomes import OutcomeKind, OutcomePrint

# Ordinary outcomes and errors need no kind: they show by themselves.
_RECORD_KINDS: Final[Mapping[OutcomeKind | None, RecordKind]] = {
    OutcomeKind.VETO: "tool-loop-veto",
    OutcomeKind.TERMINAL_EXEC_FAILURE: "terminal-exec-failure",
}


def call_digests(seen: CallPrint) -> CallDigests:
    """A call's fingerprint as an event carries it."""
    return trusted(CallDigests, args=seen.args, poll=seen.poll)


def outcome_digests(seen: OutcomePrint) -> OutcomeDigests:
    """An outcome's fingerprint as an event carries it."""
    return trusted(
        OutcomeDigests,
        args=seen.args,
        poll=seen.poll,
        result=seen.digest,
        failed=seen.failed,
        unknown_tool=None if seen.unknown_tool is None else short_name(seen.unknown_tool),
        kind=_RECORD_KINDS.get(seen.kind),
        no_progress=seen.no_progress,
        failure=seen.failure,
    )
