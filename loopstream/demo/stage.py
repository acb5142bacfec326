"""Puts the demo together: one runner an agent, a thread a run, a view over all of them."""

from __future__ import annotations

import secrets
import threading
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console

from loopstream.demo.agents import play
from loopstream.demo.board import Board, Seen
from loopstream.demo.scripts import SCRIPTS
from loopstream.demo.view import table_of, view_for
from loopstream.errors import EXIT_KAFKA, LoopstreamError
from loopstream.sdk import Runner
from loopstream.wire.connection import Connection
from loopstream.wire.keys import MasterKey, key_line

DEMO_SETTINGS: Final = {"enabled": True}
"""The documented defaults, switched on: warn at 10, block at 20, missing tools at 10."""
PROBE_AGENT: Final = "loopstream-check"
"""Agent of the one run by which ``loopstream up`` sees that a worker answers."""
_TIMEOUT_S: Final = 90.0
_LOOK_S: Final = 0.1
# With a key nobody can guess arguments from digests; all runners of a tenant share one.
_KEY: Final = secrets.token_bytes(32)


class NoAnswerError(LoopstreamError):
    """The worker did not answer a first call in time."""

    code = "no_answer"
    exit_code = EXIT_KAFKA

    def __init__(self, waited: float) -> None:
        super().__init__(
            f"no worker answered within {waited:.0f} s.",
            hint="Read the worker's messages above; `loopstream topics show` tells its lag.",
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the demo went."""

    looping: int
    stopped: int
    healthy: int
    wrongly_stopped: int

    @property
    def success(self) -> bool:
        """Every loop was stopped, and no work was."""
        return self.stopped == self.looping and self.wrongly_stopped == 0

    def closing_line(self) -> str:
        """The last line of the demo."""
        return (
            f"looping={self.looping} stopped={self.stopped} "
            f"healthy={self.healthy} wrongly_stopped={self.wrongly_stopped}"
        )


def answers(
    connection: Connection, prefix: str, timeout: float, keys: Sequence[MasterKey] = ()
) -> bool:
    """Whether a worker answers a first call through a strict gate.

    The run stays to be seen: it is named as what it is, and its agent is nobody's.
    """
    with (
        _runner(connection, PROBE_AGENT, prefix, keys, session="loopstream-check") as runner,
        runner.run(f"loopstream-check-{uuid.uuid4()}") as run,
    ):
        decision = run.before_call("hello", {}, wait=timeout)
        answered = runner.counters["gate_timeouts"] == 0
        run.after_call(decision.call, result="hello")
    return answered


def perform(
    connection: Connection, prefix: str, console: Console, keys: Sequence[MasterKey] = ()
) -> Outcome:
    """Play all scripts at once and show them until the last one has ended.

    Args:
        keys: master keys, where records are signed: the runners are issued theirs.
    """
    board, stop = Board(), threading.Event()
    cast = []
    for script in SCRIPTS:
        run_id = f"{script.agent}-{uuid.uuid4()}"
        board.add(Seen(run_id, script.agent, script.about, script.loops))
        runner = _runner(connection, script.agent, prefix, keys)
        args = (runner, run_id, script, board, stop)
        thread = threading.Thread(target=play, args=args, name=run_id, daemon=True)
        cast.append((runner, thread))
    try:
        _watch(board, [thread for _, thread in cast], stop, console)
    finally:
        stop.set()
        for runner, _ in cast:
            runner.close()
    console.print(table_of(board))
    return _outcome(board)


def _runner(
    connection: Connection,
    agent: str,
    prefix: str,
    keys: Sequence[MasterKey],
    session: str = "demo",
) -> Runner:
    name = f"demo-{uuid.uuid4()}"
    issued = "\n".join(key_line(key.issue(name)) for key in keys)
    return Runner(
        connection,
        agent=agent,
        session=session,
        prefix=prefix,
        runner=name,
        key=_KEY,
        signing_key=issued or None,
    )


def _watch(
    board: Board, threads: list[threading.Thread], stop: threading.Event, console: Console
) -> None:
    with view_for(console) as view:
        for thread in threads:
            thread.start()
        waited = 0.0
        while any(thread.is_alive() for thread in threads) and waited < _TIMEOUT_S:
            view.refresh(board)
            stop.wait(_LOOK_S)
            waited += _LOOK_S
        view.refresh(board)


def _outcome(board: Board) -> Outcome:
    runs = board.all()
    loops = [seen for seen in runs if seen.loops]
    healthy = [seen for seen in runs if not seen.loops]
    return Outcome(
        looping=len(loops),
        stopped=sum(seen.stopped for seen in loops),
        healthy=len(healthy),
        wrongly_stopped=sum(seen.stopped for seen in healthy),
    )
