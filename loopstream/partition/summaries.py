"""Which run summaries are worth writing at a checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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

    def of(self, states: Iterable[RunState]) -> Iterator[tuple[str, dict[str, Any]]]:
        """(scope key, fields) of runs whose rows are being written."""
        for state in states:
            if self._is_news(state):
                yield state.scope, summary_of(state, self._deployment)

    def forget(self, scope: str) -> None:
        """The run is dead, and shown no more."""
        self._shown.pop(scope, None)

    def _is_news(self, state: RunState) -> bool:
        missing = state.totals.gaps + state.totals.lost
        now = _Shown(status_of(state), state.verdict_seq, missing, state.appended)
        before = self._shown.get(state.scope)
        if (
            before is not None
            and before[:3] == now[:3]
            and now.appended - before.appended < _QUIET_MS
        ):
            return False
        self._shown[state.scope] = now
        if state.ended is not None:
            del self._shown[state.scope]
        return True
