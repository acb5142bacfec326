"""May this event count for its run? Scope, routing, identity, duplicates, fingerprints."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from loopstream.engine import Engine
from loopstream.events import (
    Control,
    Event,
    Pin,
    RejectCode,
    RunEvent,
    RunStarted,
    ToolCall,
    ToolOutcome,
)
from loopstream.partition.raw import (
    RawValueError,
    fingerprint_raw_call,
    fingerprint_raw_outcome,
)
from loopstream.state.run import REMEMBERED_IDS, RunState
from loopstream.wire.signing import WORKER

_ID_BYTES: Final = 16
PLAIN: Final = ""


@dataclass(frozen=True, slots=True)
class TenantKey:
    """The key that digests are made with, and its public name."""

    id: str
    secret: bytes

    def __repr__(self) -> str:
        return f"TenantKey(id={self.id!r})"


class RefusedEventError(Exception):
    """An event that can't be used; ``detail`` is in our words, never what was sent."""

    def __init__(self, code: RejectCode, detail: str | None = None) -> None:
        super().__init__(code.value)
        self.code = code
        self.detail = detail


def check_signer(signer: str, event: Event) -> None:
    """Workers sign what workers write, and a runner what it reports itself.

    Raises:
        RefusedEventError: ``forged_control``, ``identity_mismatch``.
    """
    if isinstance(event, Control | Pin):
        if signer != WORKER:
            raise RefusedEventError(RejectCode.FORGED_CONTROL, "signed by a runner")
    elif signer == WORKER or event.runner not in (None, signer):
        raise RefusedEventError(RejectCode.IDENTITY_MISMATCH, "signer")


def is_bound(state: RunState, event: RunEvent, signer: str | None) -> bool:
    """Whether the event is of exactly who the run is known to be of: nothing to check or bind."""
    return (
        event.agent == state.agent
        and event.session == state.session
        and (event.runner if signer is None else signer) == state.runner
        and state.run is not None
    )


def check_identity(state: RunState, event: RunEvent, signer: str | None = None) -> None:
    """The first event that names them binds a run's agent, session and runner.

    A runner that takes up a run again, and says so, may be another process than before; but where
    the runner has signed, a live run stays with the id that its signature was good for.

    Raises:
        RefusedEventError: ``identity_mismatch``.
    """
    if event.agent != state.agent and None not in (event.agent, state.agent):
        raise RefusedEventError(RejectCode.IDENTITY_MISMATCH, "agent")
    if event.session != state.session and None not in (event.session, state.session):
        raise RefusedEventError(RejectCode.IDENTITY_MISMATCH, "session")
    runner = event.runner if signer is None else signer
    if runner != state.runner and None not in (runner, state.runner):
        resumed = type(event) is RunStarted and event.resumed and signer is None
        anew = type(event) is RunStarted and state.ended is not None
        if not (resumed or anew):
            raise RefusedEventError(RejectCode.IDENTITY_MISMATCH, "runner")


def bind_identity(state: RunState, event: RunEvent, signer: str | None = None) -> None:
    """Remember who the run belongs to; call it once the event is accepted."""
    if (runner := event.runner if signer is None else signer) is not None:
        state.runner = runner
    if state.agent is None:
        state.agent = event.agent
    if state.session is None:
        state.session = event.session
    if state.run is None and not state.scope.startswith("\0"):
        state.run = state.scope


def fingerprinted(
    engine: Engine, state: RunState, event: ToolCall | ToolOutcome, key: TenantKey | None
) -> ToolCall | ToolOutcome:
    """The event with the digests of the deployment's profile.

    Raises:
        RefusedEventError: ``no_fingerprint``, ``raw_under_key``, ``raw_undecodable``.
    """
    if event.fp is None:
        return _from_raw(engine, state, event, key)
    if engine.digests(event) is None:
        raise RefusedEventError(RejectCode.NO_FINGERPRINT, engine.deployment.profile)
    return event


def _from_raw(
    engine: Engine, state: RunState, event: ToolCall | ToolOutcome, key: TenantKey | None
) -> ToolCall | ToolOutcome:
    deployment = engine.deployment
    keyed = deployment.key_id is not None or state.key_id not in (None, PLAIN)
    if key is None and keyed:
        raise RefusedEventError(RejectCode.RAW_UNDER_KEY, "this worker does not hold the key")
    secret, key_id = (None, None) if key is None else (key.secret, key.id)
    try:
        if isinstance(event, ToolCall):
            return fingerprint_raw_call(event, deployment.profile, secret, key_id)
        return fingerprint_raw_outcome(event, deployment.profile, secret, key_id)
    except RawValueError as error:
        raise RefusedEventError(RejectCode.RAW_UNDECODABLE, str(error)) from None


def bind_key(state: RunState, event: ToolCall | ToolOutcome) -> None:
    """All digests of a run are made with one key; the first tool event binds it.

    Raises:
        RefusedEventError: ``key_mismatch``.
    """
    key_id = (event.fp.key_id if event.fp is not None else None) or PLAIN
    if state.key_id is None:
        state.key_id = key_id
    elif state.key_id != key_id:
        raise RefusedEventError(RejectCode.KEY_MISMATCH, "key_id")


def mark_of(event: RunEvent) -> bytes | None:
    """What an event without a number is known by; None: it has one, or no id either."""
    # An empty id is none: verdicts, too, name such an event by its place.
    if event.seq is not None or not event.id:
        return None
    return hashlib.sha256(event.id.encode()).digest()[:_ID_BYTES]


def is_duplicate(state: RunState, event: RunEvent, mark: bytes | None) -> bool:
    """Whether the run has applied this very event already; ``mark`` is the event's `mark_of`."""
    if event.seq is not None:
        return ((event.epoch or 0), event.seq) <= (state.epoch, state.seq)
    return mark is not None and mark in state.recent_ids


def remember(state: RunState, event: RunEvent, mark: bytes | None) -> bool:
    """Note an accepted event against duplicates; ``mark`` is the event's `mark_of`.

    Returns:
        Whether there is a gap: events before it in its epoch were never seen.
    """
    if event.seq is None:
        if mark is not None:
            state.recent_ids.append(mark)
            del state.recent_ids[:-REMEMBERED_IDS]
        return False
    epoch = event.epoch or 0
    gap = epoch == state.epoch and event.seq > state.seq + 1
    state.epoch, state.seq = epoch, event.seq
    return gap
