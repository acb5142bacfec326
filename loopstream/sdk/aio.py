"""The runner for asyncio: the same names over the same core; only a strict gate is awaited."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
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


class AsyncRun(RunFace):
    """As `loopstream.sdk.Run`, for tasks of one event loop or of several."""

    async def before_call(
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
        """See `loopstream.sdk.Run.before_call`.

        Raises:
            RunAborted: the run was ended; so does each further call.
        """
        step = self._session.ask(tool, args, call_id, batch, wait, Spent(tokens, cost))
        if not isinstance(step, Gate):
            return step
        try:
            await _lifted(step)
        except BaseException:
            self._session.forget(step)
            raise
        return self._session.settle(step)

    async def message(
        self, text: str, *, tokens: int | None = None, cost: float | None = None
    ) -> Decision:
        """See `loopstream.sdk.Run.message`.

        Raises:
            RunAborted: the run was ended.
        """
        return self._session.say(text, Spent(tokens, cost))

    async def after_call(
        self,
        call: Call | Decision,
        *,
        result: object = MISSING,
        error: object = MISSING,
        executed: bool = True,
    ) -> None:
        """See `loopstream.sdk.Run.after_call`."""
        self._report(call, result, error, executed)

    async def compacted(
        self,
        *,
        retried: bool = False,
        succeeded: bool = True,
        reason: str | None = None,
        tokens_before: int | None = None,
        tokens_after: int | None = None,
    ) -> None:
        """See `loopstream.sdk.Run.compacted`."""
        self._session.compacted(
            succeeded=succeeded,
            retried=retried,
            reason=reason,
            tokens_before=tokens_before,
            tokens_after=tokens_after,
        )

    async def end(self, status: Status = "completed", reason: str | None = None) -> None:
        """End the run; only the first end counts."""
        self._end(status, reason)

    @overload
    def tool(
        self, function: Callable[P, Awaitable[R]], /
    ) -> Callable[P, Awaitable[R | dict[str, Any]]]: ...

    @overload
    def tool(
        self,
        *,
        name: str | None = None,
        on_block: OnBlock = "return",
        on_warn: OnWarn | None = None,
        wait: float | None = None,
    ) -> Callable[[Callable[P, Awaitable[R]]], Callable[P, Awaitable[R | dict[str, Any]]]]: ...

    def tool(
        self,
        function: Callable[..., Awaitable[Any]] | None = None,
        *,
        name: str | None = None,
        on_block: OnBlock = "return",
        on_warn: OnWarn | None = None,
        wait: float | None = None,
    ) -> Any:
        """Wrap a coroutine function as a tool of this run; see `loopstream.sdk.Run.tool`."""

        def wrap(inner: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
            read = argument_reader(inner)
            known_as = name or inner.__name__

            @functools.wraps(inner)
            async def call(*args: Any, **kwargs: Any) -> Any:
                decision = await self.before_call(known_as, read(args, kwargs), wait=wait)
                block = refused(decision, on_block, on_warn)
                if block is not None:
                    return block.result
                try:
                    result = await inner(*args, **kwargs)
                except BaseException as error:
                    await self.after_call(decision, error=error)
                    raise
                await self.after_call(decision, result=result)
                return result

            return call

        return wrap if function is None else wrap(function)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end_by(error)


class AsyncRunner(RunnerFace):
    """As `loopstream.sdk.Runner`, for asyncio.

    ::

        async with AsyncRunner("localhost:9092", agent="researcher") as runner:
            async with runner.run() as run:
                decision = await run.before_call("exec", {"command": "ls"})

    Kafka is spoken to by threads of its own, so the event loop is never held up.
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
    ) -> AsyncRun:
        """Begin a run; see `loopstream.sdk.Runner.run`.

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
        return AsyncRun(self._hub, session_)

    async def wait_ready(self, timeout: float = 10.0) -> bool:  # noqa: ASYNC109 - as the twin
        """Wait until Kafka is reached; whether it was, within ``timeout`` seconds."""
        try:
            async with asyncio.timeout(timeout):
                while not self.healthy:  # noqa: ASYNC110 - other threads change it
                    await asyncio.sleep(0.02)
        except TimeoutError:
            return False
        return True

    async def close(self, timeout: float = 5.0) -> bool:  # noqa: ASYNC109 - as the twin
        """Send what waits and let go of Kafka; whether all was sent within ``timeout`` seconds."""
        return await asyncio.to_thread(self._machine.close, timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


async def _lifted(gate: Gate) -> None:
    """Return when the gate is lifted or its time is up."""
    loop = asyncio.get_running_loop()
    lifted = asyncio.Event()

    def wake() -> None:
        # The reader's thread lifts gates; by then the loop may be gone.
        if not loop.is_closed():
            loop.call_soon_threadsafe(lifted.set)

    gate.on_lift(wake)
    try:
        async with asyncio.timeout(gate.timeout):
            await lifted.wait()
    except TimeoutError:
        return
