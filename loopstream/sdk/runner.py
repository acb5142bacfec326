"""The runner for threads: nothing in it needs an event loop."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, overload

from loopstream.fingerprint.canonical import MISSING
from loopstream.sdk.decisions import Call, Decision
from loopstream.sdk.face import RunFace, RunnerFace
from loopstream.sdk.gate import Gate
from loopstream.sdk.scribe import Spent
from loopstream.sdk.session import Status
from loopstream.sdk.tools import OnBlock, OnWarn, argument_reader, refused

P = ParamSpec("P")
R = TypeVar("R")


class Run(RunFace):
    """One agent turn-loop. Ask with `before_call`, report with `after_call`.

    As a context manager it ends the run by how the block was left: completed, failed (an
    exception), aborted (`RunAborted`) or cancelled. It may be used from several threads.
    """

    def before_call(
        self,
        tool: str,
        args: object = MISSING,
        *,
        call_id: str | None = None,
        batch: str | None = None,
        wait: float | None = None,
        tokens: int | None = None,
        cost: float | None = None,
    ) -> Decision:
        """Report a tool call that is about to be made; whether to make it.

        Without ``wait`` it takes some 30 microseconds and never waits for the network: what is
        known decides. With ``wait`` the worker is asked about this very call, for one round trip
        or ``wait`` seconds at most. Use that where a single call too many is dear.

        Args:
            tool: the tool's name, as the model spelled it.
            args: its arguments: what JSON can hold, or near it. None is JSON's null; leave it out
                for a call without arguments.
            call_id: the model's id of the call; ties the outcome to its call.
            batch: shared by the calls of one model message.
            wait: seconds to wait for an answer; absent: the runner's setting.
            tokens: what the model message that made the call took; of several calls that one
                message made, tell it with one. For the ``budget`` of profile ``extended``.
            cost: of that message, in the deployment's currency.

        Returns:
            `Allow`, `Warn` (make the call; ``reason`` is worth showing to the model) or `Block`
            (don't; give ``result`` to the model instead).

        Raises:
            RunAborted: the run was ended; so does each further call.
        """
        step = self._session.ask(tool, args, call_id, batch, wait, Spent(tokens, cost))
        if isinstance(step, Gate):
            step.wait()
            return self._session.settle(step)
        return step

    def message(
        self, text: str, *, tokens: int | None = None, cost: float | None = None
    ) -> Decision:
        """Report a message that makes no call: agents chant, too. Only its digest leaves.

        Other profiles than ``extended`` don't look at messages: nothing is sent then.

        Args:
            text: what the model said.
            tokens: as in `before_call`.
            cost: likewise.

        Returns:
            `Block` if the message was said too often; give ``reason`` to the model.

        Raises:
            RunAborted: the run was ended.
        """
        return self._session.say(text, Spent(tokens, cost))

    def after_call(
        self,
        call: Call | Decision,
        *,
        result: object = MISSING,
        error: object = MISSING,
        executed: bool = True,
    ) -> None:
        """Report what came of a call; never raises.

        Args:
            call: the decision, or its ``call``.
            result: what the tool gave back.
            error: what went wrong: a text, or the exception. It wins over a result.
            executed: False if the tool did not run after all.
        """
        self._report(call, result, error, executed)

    def compacted(
        self,
        *,
        retried: bool = False,
        succeeded: bool = True,
        reason: str | None = None,
        tokens_before: int | None = None,
        tokens_after: int | None = None,
    ) -> None:
        """Report that the context was compacted.

        Args:
            retried: the prompt is tried again afterwards: the loop guard watches what follows.
                Leave it False for a compaction that a user asked for.
            succeeded: the compaction did.
            reason: why, in words without secrets.
            tokens_before: size of the context before.
            tokens_after: and after.
        """
        self._session.compacted(
            succeeded=succeeded,
            retried=retried,
            reason=reason,
            tokens_before=tokens_before,
            tokens_after=tokens_after,
        )

    def end(self, status: Status = "completed", reason: str | None = None) -> None:
        """End the run; only the first end counts."""
        self._end(status, reason)

    @overload
    def tool(self, function: Callable[P, R], /) -> Callable[P, R | dict[str, Any]]: ...

    @overload
    def tool(
        self,
        *,
        name: str | None = None,
        on_block: OnBlock = "return",
        on_warn: OnWarn | None = None,
        wait: float | None = None,
    ) -> Callable[[Callable[P, R]], Callable[P, R | dict[str, Any]]]: ...

    def tool(
        self,
        function: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        on_block: OnBlock = "return",
        on_warn: OnWarn | None = None,
        wait: float | None = None,
    ) -> Any:
        """Wrap a function as a tool of this run: asked about before, reported after.

        Args:
            function: what to wrap; its arguments by name are the call's.
            name: the tool's name; absent: the function's.
            on_block: ``"return"`` the blocked result in place of the function's, or ``"raise"``
                `ToolBlocked`.
            on_warn: called with each `Warn`.
            wait: as in `before_call`.
        """

        def wrap(inner: Callable[..., Any]) -> Callable[..., Any]:
            read = argument_reader(inner)
            known_as = name or inner.__name__

            @functools.wraps(inner)
            def call(*args: Any, **kwargs: Any) -> Any:
                decision = self.before_call(known_as, read(args, kwargs), wait=wait)
                block = refused(decision, on_block, on_warn)
                if block is not None:
                    return block.result
                try:
                    result = inner(*args, **kwargs)
                except BaseException as error:
                    self.after_call(decision, error=error)
                    raise
                self.after_call(decision, result=result)
                return result

            return call

        return wrap if function is None else wrap(function)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end_by(error)


class Runner(RunnerFace):
    """A process that executes runs. One a process is enough; it may be shared by threads.

    Making one never fails for want of Kafka and never waits for it. Make it after a fork, not
    before: its threads stay with the parent. Close it, or use it as a context manager::

        with Runner("localhost:9092", agent="researcher") as runner, runner.run() as run:
            decision = run.before_call("exec", {"command": "ls"})
            if decision.allowed:
                run.after_call(decision, result=...)
    """

    def run(
        self,
        run: str | None = None,
        *,
        session: str | None = None,
        resumed: bool = False,
        trace: str | None = None,
        parent_run: str | None = None,
        root_run: str | None = None,
        traceparent: str | None = None,
    ) -> Run:
        """Begin a run.

        Args:
            run: its id; absent: a new one. Blank with a ``session``: the session's "no run" scope.
            session: conversation that it belongs to; absent: the runner's, or none.
            resumed: the run was begun before, here or elsewhere: what stands against it is sent
                again. Meant for a run that is taken up after a restart.
            trace: trace that it belongs to.
            parent_run: run that started it.
            root_run: first run of them all.
            traceparent: W3C trace context, handed on to the verdicts.

        Raises:
            UsageError: the run is live in this runner.
        """
        session_ = self._hub.begin(
            run,
            session=session,
            resumed=resumed,
            trace=trace,
            parent_run=parent_run,
            root_run=root_run,
            traceparent=traceparent,
        )
        return Run(self._hub, session_)

    def wait_ready(self, timeout: float = 10.0) -> bool:
        """Wait until Kafka is reached; whether it was, within ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        while not self.healthy:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.02)
        return True

    def close(self, timeout: float = 5.0) -> bool:
        """Send what waits and let go of Kafka; whether all was sent within ``timeout`` seconds.

        Runs that are live are not ended: another process may take them up.
        """
        return self._machine.close(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
