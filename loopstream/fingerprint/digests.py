"""Fingerprints as they stand on the wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from loopstream.events.text import short_name
from loopstream.events.tool import CallDigests, OutcomeDigests, RecordKind
from loopstream.fingerprint.calls import CallPrint
from loopstream.fingerprint.outcomes import OutcomeKind, OutcomePrint

# Of a digest in `result_text`, behind the prefix of an error.
_HEX_DIGITS: Final = 64
# Ordinary outcomes and errors need no kind: they show by themselves.
_RECORD_KINDS: Final[Mapping[OutcomeKind | None, RecordKind]] = {
    OutcomeKind.VETO: "tool-loop-veto",
    OutcomeKind.TERMINAL_EXEC_FAILURE: "terminal-exec-failure",
}


def call_digests(seen: CallPrint) -> CallDigests:
    """A call's fingerprint as an event carries it."""
    return CallDigests.trusted(args=seen.args, poll=seen.poll)


def outcome_digests(seen: OutcomePrint) -> OutcomeDigests:
    """An outcome's fingerprint as an event carries it."""
    text = seen.result
    return OutcomeDigests.trusted(
        args=seen.args,
        poll=seen.poll,
        result=None if text is None else bytes.fromhex(text[-_HEX_DIGITS:]),
        failed=text is not None and len(text) > _HEX_DIGITS,
        unknown_tool=None if seen.unknown_tool is None else short_name(seen.unknown_tool),
        kind=_RECORD_KINDS.get(seen.kind),
        no_progress=seen.no_progress,
        failure=seen.failure,
    )
