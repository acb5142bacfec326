"""Which run summaries are worth writing at a checkpoint."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from loopstream.policy.deployment import Deployment
from loopstream.policy.summary import status_of, summary_of
from loopstream.state.run import RunState

# Mere progress (calls, last event) is shown this often at most; whatever was said of the run, and
# so each change of its standing, with the next rows. Append time.
_QUIET_MS: Final = 30_000


class _Shown(NamedTuple):
    status: str
    verdicts: int
    missing: int
    appended: int


class Summaries:
    """Remembers what was shown of each run; lost at a restart, which only shows it again.

    Args:
        deployment: whose runs they are.
    """

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._shown: dict[str, _Shown] = {}
        self._new: list[tuple[str, dict[str, Any]]] = []

    def note(self, state: RunState) -> None:
        """Take up a run whose row is being written."""
        missing = state.totals.gaps + state.totals.lost
        now = _Shown(status_of(state), state.verdict_seq, missing, state.appended)
        before = self._shown.get(state.scope)
        if (
            before is not None
            and before[:3] == now[:3]
            and now.appended - before.appended < _QUIET_MS
        ):
            return
        self._shown[state.scope] = now
        if state.ended is not None:
            del self._shown[state.scope]
        fields = summary_of(state, self._deployment).model_dump(mode="json", exclude_none=True)
        self._new.append((state.scope, fields))

    def forget(self, scope: str) -> None:
        """The run is dead, and shown no more."""
        self._shown.pop(scope, None)

    def take(self) -> list[tuple[str, dict[str, Any]]]:
        """Summaries since the last call, as (scope key, fields)."""
        taken, self._new = self._new, []
        return taken
