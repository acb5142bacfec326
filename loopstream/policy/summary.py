"""From a run's state to the summary that people see."""

from __future__ import annotations

from typing import Any, Final

from loopstream.events.summary import RunStatus
from loopstream.policy.deployment import Deployment
from loopstream.policy.reasons import text_of
from loopstream.state.run import RunState

_MAX_STANDING: Final = 64


def status_of(state: RunState) -> RunStatus:
    """The worst thing that holds for the run."""
    if state.aborted is not None:
        return "aborted"
    if state.ended is not None:
        return "ended"
    if state.standing:
        return "blocked"
    return "warned" if state.totals.warnings else "active"


def summary_of(state: RunState, deployment: Deployment | None = None) -> dict[str, Any]:
    """The fields of a `RunSummary` of the run as of its last event, as JSON has them.

    Not by way of the model: each run that a checkpoint writes is asked for it.

    Args:
        deployment: whose run it is; None: any that enforces. In mode ``shadow`` nobody was warned
            and nothing refused: the standing is what it would be, and the verdicts count as
            ``shadow`` alone.
    """
    said, totals = state.last_verdict, state.totals
    acted = deployment is None or deployment.mode == "enforce"
    standing = [
        _known(
            detector=block.detector,
            count=block.count,
            signature=target.signature,
            tool=target.tool or block.tool,
        )
        for target, block in list(state.standing.items())[:_MAX_STANDING]
    ]
    return _known(
        v=1,
        type="run_summary",
        scope=state.scope,
        run=state.run,
        agent=state.agent,
        session=state.session,
        runner=state.runner,
        status=status_of(state),
        mode=None if acted else "shadow",
        profile=None if deployment is None else deployment.profile,
        action=None if said is None else said.action,
        detector=None if said is None else said.detector,
        count=0 if said is None else said.times,
        reason=None if said is None else text_of(said),
        verdict_time=None if said is None else said.time,
        calls=totals.calls,
        outcomes=totals.outcomes,
        refused=totals.refused,
        warnings=totals.warnings if acted else 0,
        blocks=totals.blocks if acted else 0,
        shadow=totals.withheld,
        gaps=totals.gaps,
        lost=totals.lost,
        standing=standing,
        verdicts=state.verdict_seq,
        last_event=state.last_event,
        partition=state.partition,
        offset=state.offset,
    )


def _known(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
