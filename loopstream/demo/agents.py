"""Plays a script through the SDK, as an agent's own loop would: ask, call, report."""

from __future__ import annotations

import threading
from typing import Final

from loopstream.demo.board import Board
from loopstream.demo.scripts import Script, Turn
from loopstream.sdk import Block, Run, RunAborted, Runner, Warn

# A stubborn model tries a refused call again a few times before its agent gives up.
_STUBBORN: Final = 3
_TURN_S: Final = 0.5


def play(runner: Runner, run_id: str, script: Script, board: Board, pace: threading.Event) -> None:
    """Play one agent's run to its end: its work is done, or it was stopped.

    Args:
        runner: the agent's runner.
        pace: waited for between turns; set it to end all agents early.
    """
    board.change(run_id, status="running")
    try:
        with runner.run(run_id) as run:
            for turn in script.turns():
                if not _insist(run, turn, board, run_id, pace):
                    break
    except RunAborted as aborted:
        board.change(
            run_id,
            status="aborted",
            detector=aborted.detector,
            count=aborted.count,
            reason=aborted.reason,
        )
        return
    if not board.get(run_id).stopped:
        board.change(run_id, status="done")


def _insist(run: Run, turn: Turn, board: Board, run_id: str, pace: threading.Event) -> bool:
    """One turn, tried again while it is refused; False when the agent gives up."""
    for _ in range(_STUBBORN):
        if pace.wait(_TURN_S):
            return False
        if _take(run, turn, board, run_id):
            return True
    return False


def _take(run: Run, turn: Turn, board: Board, run_id: str) -> bool:
    """One turn; False if its call was refused."""
    if turn.compaction:
        run.compacted(retried=True)
        return True
    decision = run.before_call(turn.tool, turn.args or {})
    if isinstance(decision, Warn | Block):
        blocked = isinstance(decision, Block)
        board.count(run_id, "blocks" if blocked else "warnings")
        board.change(
            run_id,
            status="blocked" if blocked else "warned",
            detector=decision.detector or "",
            count=decision.count or 0,
            reason=decision.reason,
        )
        if blocked:
            return False
    board.count(run_id, "calls")
    if turn.error is not None:
        run.after_call(decision.call, error=turn.error)
    else:
        run.after_call(decision.call, result=turn.result)
    return True
