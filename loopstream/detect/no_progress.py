"""How often a call came to nothing, by profile, and the findings that are made of it."""

from __future__ import annotations

from typing import NamedTuple

from loopstream.detect.base import DetectorName, Finding, Probe
from loopstream.events.verdict import Level
from loopstream.state.history import History
from loopstream.state.record import Record
from loopstream.state.run import Target

EXEC = "exec"
# What stands in a key in place of a result that never came.
_NO_OUTCOME = "none"


class Stuck(NamedTuple):
    """Settled records without progress, newest first, and the result they share.

    ``across``: they are records of several calls, so the call itself is not what is stuck.
    """

    times: int
    outcome: str | None
    across: bool = False


def stuck_finding(
    probe: Probe, level: Level, detector: DetectorName, threshold: int, prefix: str
) -> Finding:
    """A finding about one call whose outcome does not change."""
    outcome = probe.outcome if probe.outcome is not None else _NO_OUTCOME
    subject = f"failing:{probe.tool}" if probe.across else f"stuck:{probe.signature}"
    return Finding(
        level,
        detector,
        probe.stuck,
        threshold,
        f"{prefix}:{probe.tool}:{probe.signature}:{outcome}",
        probe.tool,
        target=Target(signature=probe.signature),
        subject=f"{subject}:{outcome}",
    )


def documented_stuck(history: History, signature: str) -> Stuck:
    """N of SEMANTICS section 7. O(1)."""
    call = history.calls.get(signature)
    return Stuck(0, None) if call is None else Stuck(call.streak, call.outcome)


def reference_stuck(history: History, tool: str, signature: str) -> Stuck:
    """N of SEMANTICS section 10: vetoes count, and commands that fail alike count together.

    Walks the history, which that profile fixes at 30 records.
    """
    own = _with_vetoes(history, signature)
    if tool != EXEC:
        return own
    across = failures_across(history, signature)
    return across if across.times > own.times else own


def _with_vetoes(history: History, signature: str) -> Stuck:
    call = history.calls.get(signature)
    if call is None:
        return Stuck(0, None)
    count = vetoes = 0
    outcome: str | None = None
    for record in reversed(history.records):
        if record.call is not call:
            continue
        if record.vetoed:
            vetoes += 1
        elif record.result is not None:
            if outcome is None:
                outcome = record.result
            elif record.result != outcome:
                break  # vetoes in front of a different, older outcome are lost
            count += 1 + vetoes
            vetoes = 0
    return Stuck(vetoes, None) if outcome is None else Stuck(count, outcome)


def failures_across(history: History, signature: str) -> Stuck:
    """Newest failed commands that failed alike, whatever the command was.

    Ends where ``signature`` has failed again after another command's failure has been met. Refusals
    count towards neither, and never alone.
    """
    count = vetoes = 0
    newest: Record | None = None
    met_other = False
    for record in reversed(history.records):
        if record.call.tool != EXEC:
            break
        if record.pending:
            continue
        if record.vetoed:
            vetoes += 1
            continue
        if record.failure is None or record.result is None:
            break
        if record.call.signature != signature:
            met_other = True
        elif met_other:
            break
        if newest is None:
            newest = record
        elif record.result != newest.result and record.failure != newest.failure:
            break
        count += 1 + vetoes
        vetoes = 0
    return Stuck(0, None) if newest is None else Stuck(count, newest.result, across=True)
