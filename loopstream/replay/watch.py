"""An engine that lets others look at each step: what the fold of a replay can be asked about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

from loopstream.detect.limits import Limits
from loopstream.engine import Engine, Step
from loopstream.events import RunEvent, RunStarted, ToolCall, ToolOutcome
from loopstream.events.verdict import Action
from loopstream.policy.deployment import Deployment
from loopstream.policy.verdicts import Position
from loopstream.state.run import RunState

_FIRST_SEQ: Final = 1
_SPOKEN: Final = frozenset((Action.WARN, Action.BLOCK, Action.ABORT))
_STOPS: Final = frozenset((Action.BLOCK, Action.ABORT))


class Watcher(Protocol):
    """Sees each event of each run, before and after it was folded."""

    def before(self, state: RunState, event: RunEvent, limits: Limits, at: Position) -> None:
        """The state does not know the event yet."""
        ...

    def after(self, state: RunState, event: RunEvent, step: Step, at: Position) -> None:
        """What the event came to."""
        ...

    def commanded(self, step: Step, what: str, reason: str) -> None:
        """What an operator's command (``release``, ``abort``) came to."""
        ...


class WatchedEngine(Engine):
    """The engine, with watchers around each step; it decides nothing by itself."""

    def __init__(self, deployment: Deployment, watchers: Sequence[Watcher]) -> None:
        super().__init__(deployment)
        self._watchers = tuple(watchers)

    def step(self, state: RunState, event: RunEvent, limits: Limits, at: Position) -> Step:
        """Fold one event, watched."""
        for watcher in self._watchers:
            watcher.before(state, event, limits, at)
        step = super().step(state, event, limits, at)
        for watcher in self._watchers:
            watcher.after(state, event, step, at)
        return step

    def release(self, step: Step, reason: str) -> Step:
        """Carry out a command, watched."""
        return self._tell(super().release(step, reason), "release", reason)

    def abort(self, step: Step, reason: str) -> Step:
        """Carry out a command, watched."""
        return self._tell(super().abort(step, reason), "abort", reason)

    def _tell(self, step: Step, what: str, reason: str) -> Step:
        for watcher in self._watchers:
            watcher.commanded(step, what, reason)
        return step


class Beginnings:
    """Which runs had begun before the log did: what is said of them is a guess.

    A run is whole if it begins with ``run_started``, or so late that a state from before the log
    would have been forgotten by then.

    Args:
        log_begin_ms: append time of the first record that is left.
        partial: scopes known so far.
    """

    def __init__(self, log_begin_ms: int, idle_ms: int, partial: set[str]) -> None:
        self._forgotten_at = log_begin_ms + idle_ms
        self.partial = partial

    def before(self, state: RunState, event: RunEvent, limits: Limits, at: Position) -> None:
        """Look at a run's first event."""
        if state.appended:
            return
        began = type(event) is RunStarted and not event.resumed
        if at.append_time > self._forgotten_at or (began and (event.seq or 0) <= _FIRST_SEQ):
            self.partial.discard(state.scope)
        else:
            self.partial.add(state.scope)

    def after(self, state: RunState, event: RunEvent, step: Step, at: Position) -> None:
        """Nothing."""

    def commanded(self, step: Step, what: str, reason: str) -> None:
        """Nothing: a command is no beginning."""


class FirstVerdicts:
    """For what-if: each run's first verdict and first stop, and where the recording refused.

    After a recorded refusal the run went another way than it would have gone under other
    settings, so what is decided from there on is censored.

    Args:
        known: by scope, what `as_dict` gave.
    """

    def __init__(self, known: dict[str, dict[str, int]] | None = None) -> None:
        self._runs: dict[str, dict[str, int]] = known or {}
        self.marks: dict[str, dict[str, Any]] = {}

    def as_dict(self) -> dict[str, dict[str, int]]:
        """What has to survive an interruption."""
        return self._runs

    def before(self, state: RunState, event: RunEvent, limits: Limits, at: Position) -> None:
        """Note a refusal that the recording shows."""
        refused = (type(event) is ToolCall and event.disposition == "refused") or (
            type(event) is ToolOutcome and not event.executed
        )
        if refused:
            self._runs.setdefault(state.scope, {}).setdefault("refused", at.offset)

    def after(self, state: RunState, event: RunEvent, step: Step, at: Position) -> None:
        """Mark what is first, and what is censored."""
        for verdict in step.verdicts:
            if verdict.action not in _SPOKEN:
                continue
            run = self._runs.setdefault(state.scope, {})
            mark: dict[str, Any] = {}
            if "refused" in run:
                mark["censored"] = True
            elif "first" not in run:
                run["first"] = at.offset
                mark["first"] = True
            if verdict.action in _STOPS and "refused" not in run and "stop" not in run:
                run["stop"] = at.offset
                mark["first_stop"] = True
            if mark:
                self.marks[verdict.id] = mark

    def commanded(self, step: Step, what: str, reason: str) -> None:
        """An operator's word is not the settings': not counted."""
