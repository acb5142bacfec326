"""One events partition, folded record by record."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from loopstream.engine import Engine, OrderedStep, Step
from loopstream.events import (
    Control,
    DeadLetter,
    Event,
    Pin,
    RejectCode,
    RunEvent,
    ToolCall,
    ToolOutcome,
    Verdict,
)
from loopstream.partition.admission import (
    RefusedEventError,
    TenantKey,
    bind_identity,
    bind_key,
    check_identity,
    check_signer,
    fingerprinted,
    is_bound,
    is_duplicate,
    mark_of,
    remember,
)
from loopstream.partition.controls import Controls
from loopstream.partition.marker import Marker, marker_key
from loopstream.partition.orders import due
from loopstream.partition.orders import remember as remember_order
from loopstream.partition.settings import SettingsInForce
from loopstream.partition.sources import ControlSources
from loopstream.partition.summaries import Summaries
from loopstream.policy.deployment import Deployment, Profile
from loopstream.policy.orders import AgentOrder, Order
from loopstream.policy.verdicts import Position
from loopstream.state.pack import pack, peek, unpack
from loopstream.state.run import NO_OFFSET, RunState
from loopstream.wire.codec import Decoded
from loopstream.wire.routing import NO_RUN_PREFIX, partition_of, scope_key
from loopstream.wire.signing import Verifier, open_record

_SAMPLE_BYTES: Final = 1024

MakeSettings = Callable[[Profile, dict[str, str]], SettingsInForce]


class Record(Protocol):
    """A consumed record, as aiokafka and kafka-python both have it (LogAppendTime)."""

    @property
    def offset(self) -> int:
        """Place in the partition."""
        ...

    @property
    def timestamp(self) -> int:
        """Append time in milliseconds."""
        ...

    @property
    def value(self) -> bytes | None:
        """A frame or a single event; None: a tombstone."""
        ...

    @property
    def headers(self) -> Sequence[tuple[str, bytes]]:
        """Only ``content-type`` is looked at, and those of a signature where it is checked."""
        ...


class Rows(Protocol):
    """The partition's packed rows as of the last checkpoint."""

    def get(self, key: bytes) -> bytes | None:
        """The row under a scope key (UTF-8), or None."""
        ...


class Partition:
    """The fold of one partition.

    Args:
        deployment: what the whole deployment agrees on.
        number: the partition's number.
        partitions: how many partitions the events topic has.
        rows: packed rows as of the last checkpoint.
        sources: the operators' topics, as far as they have been read.
        state: the partition's marker row; None: nothing was ever written, the partition is
            fresh and pins what the sources say now.
        key: the tenant's key, if the worker holds it: for raw events.
        samples: dead letters carry the first bytes of what was refused (``capture = full``).
        verifier: checks the signatures of records; None: nobody asks who wrote them.
        engine: steps the runs; replay passes one that watches, or that asks "what if".
        in_force: makes the settings in force of those that the marker row holds.

    Attributes:
        live: states by scope key; those in ``rows`` are loaded when an event asks for them.
        verdicts: decided since the shell last took the list, as (scope key, verdict).
        dead_letters: likewise.
        counts: notes for metrics: applied, duplicate, gap, replayed, after_end, control, …
    """

    def __init__(
        self,
        deployment: Deployment,
        number: int,
        partitions: int,
        rows: Rows,
        sources: ControlSources,
        *,
        state: bytes | None = None,
        key: TenantKey | None = None,
        samples: bool = False,
        verifier: Verifier | None = None,
        engine: Engine | None = None,
        in_force: MakeSettings = SettingsInForce,
    ) -> None:
        self.number = number
        self.live: dict[str, RunState] = {}
        self.verdicts: list[tuple[str, Verdict]] = []
        self.dead_letters: list[DeadLetter] = []
        self.counts: Counter[str] = Counter()
        self._deployment = deployment
        self._engine = Engine(deployment) if engine is None else engine
        self._partitions = partitions
        self._rows = rows
        self._key = key
        self._samples = samples
        self._verifier = verifier
        self._marker = Marker(number) if state is None else Marker.unpack(state)
        self._settings = in_force(deployment.profile, self._marker.settings)
        self._controls = Controls(deployment, partitions, sources, self._marker, self._settings)
        if state is None:
            self._controls.pin_present()
        self._dirty: dict[str, None] = {}
        self._unstored: set[str] = set()
        self._summaries = Summaries(deployment)
        self._taken: list[str] = []
        self._appended = 0
        self._waiting: tuple[int, Decoded] | None = None

    @property
    def dirty(self) -> int:
        """Number of rows changed since `take_rows`."""
        return len(self._dirty)

    @property
    def last_offset(self) -> int | None:
        """Offset of the last record applied; None if there was none."""
        return None if self._marker.offset == NO_OFFSET else self._marker.offset

    @property
    def pinned(self) -> bool:
        """Whether the pin has been read back from the partition's log."""
        return self._marker.pinned

    def pin(self, now_ms: int) -> Pin:
        """The pin to append to the partition; ``now_ms`` is data, nothing depends on it."""
        return self._controls.pin_event(now_ms)

    def pending_controls(self) -> list[Control]:
        """Settings and commands that this partition's log does not have yet."""
        return list(self._controls.pending())

    def apply(self, record: Record) -> bool:
        """Fold one record.

        Returns:
            False if it refers to a source record that has not been read yet: nothing was
            applied; read on and call again with the same record.
        """
        decoded = self._decode(record)
        # A runner's copy of a control is refused, whatever its source says.
        if not decoded.signer and not all(
            self._controls.readable(event) for event in decoded.events if type(event) is Control
        ):
            self._waiting = (record.offset, decoded)
            return False
        self._appended = max(0, record.timestamp)  # -1: a topic without append times
        self._marker.append_time = max(self._marker.append_time, self._appended)
        for reject in decoded.rejects:
            self._refuse(record, reject.index, reject.code, reject.detail)
        # Several events of one run in one frame share its offset: only what was applied before
        # this record makes it a replay.
        applied: set[str] = set()
        counted = 0
        for index, event in zip(decoded.indexes, decoded.events, strict=True):
            try:
                counted += self._event(record, index, event, applied, decoded.signer)
            except RefusedEventError as refused:
                self._refuse(record, index, refused.code, refused.detail)
        if counted:
            self.counts["applied"] += counted
        self._marker.offset = record.offset
        return True

    def take_rows(self) -> list[tuple[bytes, bytes]]:
        """The changed rows, packed, by key; the marker row last. Nothing is dirty afterwards."""
        self._taken = list(self._dirty)
        rows = [(scope.encode(), pack(self.live[scope])) for scope in self._taken]
        self._marker.rows += len(self._unstored)
        self._marker.settings = self._settings.blocks
        rows.append((marker_key(self.number), self._marker.pack()))
        self._dirty.clear()
        self._unstored.clear()
        return rows

    def summaries(self) -> list[tuple[str, dict[str, Any]]]:
        """Summaries of the rows just taken, where there is something new to say.

        To be asked before anything else happens; who shows nobody the runs need not ask.
        """
        taken, self._taken = self._taken, []
        return list(self._summaries.of(self.live[scope] for scope in taken))

    def shrink(self, size: int) -> None:
        """Forget live states beyond ``size`` that the stored rows say everything about."""
        surplus = len(self.live) - size
        if surplus <= 0:
            return
        for scope in [s for s in self.live if s not in self._dirty][:surplus]:
            del self.live[scope]

    def expired(self, row: bytes) -> bool:
        """Whether a stored row is dead by the partition's newest append time."""
        head = peek(row)
        return _is_dead(self._deployment, head.appended, head.ended, self._marker.append_time)

    def forget(self, scope: str) -> bool:
        """Before a dead row is erased: drop its live state; False if it has new life in it."""
        if scope in self._dirty:
            return False
        self.live.pop(scope, None)
        self._summaries.forget(scope)
        self._marker.rows -= 1
        return True

    # -- one event -------------------------------------------------------------------------

    def _decode(self, record: Record) -> Decoded:
        if self._waiting is not None and self._waiting[0] == record.offset:
            decoded = self._waiting[1]
            self._waiting = None
            return decoded
        return open_record(record.value, record.headers, self._verifier)

    def _event(
        self, record: Record, index: int, event: Event, applied: set[str], signer: str | None
    ) -> bool:
        """Fold one event; whether it was one of a run's, and applied."""
        if signer is not None:
            check_signer(signer, event)
        if type(event) is Control:
            self._control(record, index, event, applied)
            return False
        if type(event) is Pin:
            self.counts["pin" if self._controls.see_pin(event) else "foreign_pin"] += 1
            return False
        return self._run_event(record, index, event, applied, signer)

    def _run_event(
        self, record: Record, index: int, event: RunEvent, applied: set[str], signer: str | None
    ) -> bool:
        scope, state = self._find(event)
        if state.offset >= record.offset and scope not in applied:
            # Replayed after a crash: the row has it already. Writing the row again regenerates
            # its changelog record, in case that was what got lost.
            self.counts["replayed"] += 1
            self._touch(scope, state)
            return False
        mark = mark_of(event)
        if is_duplicate(state, event, mark):
            self.counts["duplicate"] += 1
            return False
        known, bound = state.agent is not None, is_bound(state, event, signer)
        if not bound:
            check_identity(state, event, signer)
        if type(event) is ToolCall or type(event) is ToolOutcome:
            event = fingerprinted(self._engine, state, event, self._key)
            bind_key(state, event)
        if not bound:
            bind_identity(state, event, signer)
        self._note(state, event, mark)
        at = Position(self.number, record.offset, index, self._appended)
        if self._marker.orders:
            self._hear(state, event, at, known=known)
        step = self._engine.step(state, event, self._settings.limits(state.agent), at)
        state.offset, state.appended = record.offset, self._appended
        applied.add(scope)
        self._touch(scope, state)
        if step.verdicts:
            self._publish(scope, step)
        elif step.judgement is not None:
            self.counts["throttled"] += 1  # a warning that was announced already
        return True

    def _note(self, state: RunState, event: RunEvent, mark: bytes | None) -> None:
        if remember(state, event, mark):
            state.totals.gaps += 1
            self.counts["gap"] += 1
        if state.ended is not None:
            self.counts["after_end"] += 1
        if (type(event) is ToolCall or type(event) is ToolOutcome) and event.oversize:
            self.counts["oversize"] += 1

    def _publish(self, scope: str, step: Step) -> None:
        for verdict in step.verdicts:
            self.verdicts.append((scope, verdict))

    def _find(self, event: RunEvent) -> tuple[str, RunState]:
        """An event's scope key, and the state that it counts for."""
        run = event.run
        # Nearly always a run that is live under this very id: nothing to trim.
        if run in self.live and not run.startswith(NO_RUN_PREFIX):
            return run, self._state(run)
        scope = scope_key(run, event.session)
        if scope is None:
            raise RefusedEventError(RejectCode.NO_SCOPE, "run and session")
        return scope, self._state(scope)

    def _state(self, scope: str) -> RunState:
        """The run's state: live, or from its row, or new; a dead one counts as not there."""
        state = self.live.get(scope)
        if state is None:
            if partition_of(scope, self._partitions) != self.number:
                raise RefusedEventError(RejectCode.MISROUTED, f"not of partition {self.number}")
            row = self._rows.get(scope.encode())
            if row is None:
                return RunState(scope, self.number)
            state = unpack(scope, row)
            self.live[scope] = state
        if _is_dead(self._deployment, state.appended, state.ended, self._appended):
            self.counts["expired"] += 1
            dead, state = state, RunState(scope, self.number)
            state.offset = dead.offset
            self.live[scope] = state
        return state

    def _touch(self, scope: str, state: RunState) -> None:
        if scope not in self.live:
            self.live[scope] = state
            self._unstored.add(scope)
        self._dirty[scope] = None

    # -- operators -------------------------------------------------------------------------

    def _control(self, record: Record, index: int, control: Control, applied: set[str]) -> None:
        order = self._controls.take(control)
        self.counts["control"] += 1
        if order is None:
            return
        if order.agent is not None:
            kept = AgentOrder.of(order, self._appended)
            remember_order(self._marker, self._deployment, order.agent, kept)
            return
        scope = control.key
        if partition_of(scope, self._partitions) != self.number:
            raise RefusedEventError(RejectCode.MISROUTED, f"not of partition {self.number}")
        state = self._state(scope)
        if state.offset >= record.offset and scope not in applied:
            return  # replayed after a crash: the row has it already
        at = Position(self.number, record.offset, index, self._appended)
        self._hear(state, control, at, known=True)  # one for all its runs came before
        self._obey(state, control, at, order)
        state.offset = record.offset
        # A command's time is not the run's, but a run of which nothing else is known ends too.
        state.appended = state.appended or self._appended
        applied.add(scope)
        self._touch(scope, state)

    def _hear(
        self, state: RunState, event: RunEvent | Control, at: Position, *, known: bool
    ) -> None:
        """Carry out what was ordered for all runs of the agent since the run's last event."""
        order = due(self._marker, state, known=known)
        if order is not None:
            self._obey(state, event, at, order)

    def _obey(self, state: RunState, event: RunEvent | Control, at: Position, order: Order) -> None:
        step = OrderedStep(state, self._settings.limits(state.agent), event, at, order)
        if order.action == "release":
            self._engine.release(step, order.reason)
        else:
            self._engine.abort(step, order.reason)
        self._publish(state.scope, step)

    def _refuse(self, record: Record, index: int, code: RejectCode, detail: str | None) -> None:
        value = record.value or b""
        self.counts["rejected"] += 1
        self.dead_letters.append(
            DeadLetter(
                code=code,
                topic=f"{self._deployment.prefix}.events",
                partition=self.number,
                offset=record.offset,
                index=index,
                detail=detail,
                sha256=hashlib.sha256(value).digest(),
                append_time=self._appended,
                sample=value[:_SAMPLE_BYTES] if self._samples else None,
            )
        )


def _is_dead(deployment: Deployment, appended: int, ended: int | None, append_time: int) -> bool:
    """Idle for too long, or past the grace after its end; by append times, so replay agrees."""
    if ended is not None and append_time - ended > deployment.grace_ms:
        return True
    return appended > 0 and append_time - appended > deployment.idle_ms
