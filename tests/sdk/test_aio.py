import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from loopstream.events import Action, Level, RunEnded, ToolCall, ToolOutcome
from loopstream.sdk import Allow, AsyncRunner, Block, RunAborted, ToolBlocked, Warn, blocked_result

from .fakes import Bus, about, on, on_signature, verdict


@pytest.fixture
def bus() -> Bus:
    return Bus()


@pytest.fixture
async def runner(bus: Bus) -> AsyncIterator[AsyncRunner]:
    async with on(bus, AsyncRunner)("bus:1", agent="a", linger_ms=0) as runner:
        yield runner


async def eventually(holds: Any) -> None:
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.005)


async def test_the_same_usage_with_await(bus: Bus, runner: AsyncRunner) -> None:
    assert await runner.wait_ready()
    async with runner.run() as run:
        decision = await run.before_call("exec", {"command": "ls"})
        assert isinstance(decision, Allow)
        await run.after_call(decision, result="files")
        await run.compacted(retried=True)
        await run.end("failed", "by hand")
    await runner.close()
    assert [event.type for event in bus.events] == [
        "run_started",
        "tool_call",
        "tool_outcome",
        "compaction",
        "run_ended",
    ]


def answering(bus: Bus, level: Level) -> None:
    """Let the bus answer each gated call."""

    def answer(frame: Any) -> None:
        event = bus.events[-1]
        if isinstance(event, ToolCall):
            assert event.run is not None
            assert event.id is not None
            bus.publish(
                verdict(Action.ANSWER, scope=event.run, level=level, evidence=about(event.id))
            )

    bus.answer = answer


@pytest.mark.parametrize(
    ("level", "kind"), [(Level.NONE, Allow), (Level.WARNING, Warn), (Level.CRITICAL, Block)]
)
async def test_a_gate_waits_without_holding_the_loop(
    bus: Bus, runner: AsyncRunner, level: Level, kind: type
) -> None:
    answering(bus, level)
    async with runner.run() as run:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        ticking = asyncio.create_task(tick())
        decision = await run.before_call("exec", wait=30)
        ticking.cancel()
    assert isinstance(decision, kind)
    assert ticks > 0


async def test_a_gate_without_answer_falls_open(bus: Bus, runner: AsyncRunner) -> None:
    async with runner.run() as run:
        assert isinstance(await run.before_call("exec", wait=0.01), Allow)
    assert runner.counters["gate_timeouts"] == 1


async def test_many_gates_at_once(bus: Bus, runner: AsyncRunner) -> None:
    async with runner.run("run-1") as run:
        calls = [asyncio.create_task(run.before_call("exec", {"n": n}, wait=30)) for n in range(20)]
        await eventually(lambda: sum(isinstance(e, ToolCall) for e in bus.events) == 20)
        for event in bus.events:
            if isinstance(event, ToolCall) and event.id is not None:
                bus.publish(
                    verdict(
                        Action.ANSWER,
                        scope="run-1",
                        level=Level.CRITICAL if (event.seq or 0) % 2 else Level.NONE,
                        evidence=about(event.id),
                    )
                )
        decisions = await asyncio.gather(*calls)
    assert sum(isinstance(decision, Block) for decision in decisions) == 10


async def test_an_abort_ends_a_wait(bus: Bus, runner: AsyncRunner) -> None:
    async def loop() -> None:
        async with runner.run("run-1") as run:
            await run.before_call("exec", wait=30)

    waiting = asyncio.create_task(loop())
    await eventually(lambda: len(bus.events) == 2)
    bus.publish(verdict(Action.ABORT, scope="run-1"))
    with pytest.raises(RunAborted):
        await waiting
    await runner.close()
    *_, ended = bus.events
    assert isinstance(ended, RunEnded)
    assert ended.status == "aborted"


async def test_a_wait_can_be_cancelled(bus: Bus, runner: AsyncRunner) -> None:
    run = runner.run("run-1")
    waiting = asyncio.create_task(run.before_call("exec", wait=30))
    await eventually(lambda: len(bus.events) == 2)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert run._session._gates == {}


async def test_wrapped_coroutines(bus: Bus, runner: AsyncRunner) -> None:
    async with runner.run("run-1") as run:

        async def found(query: str) -> str:
            if not query:
                raise LookupError("nothing")
            return query

        search = run.tool(name="search")(found)
        strict = run.tool(name="search", on_block="raise")(found)
        assert await search("cats") == "cats"
        with pytest.raises(LookupError):
            await search(query="")
        signature = (await run.before_call("search", {"query": "cats"})).call.signature
        await eventually(lambda: bus.events)
        bus.publish(verdict(Action.BLOCK, scope="run-1", applies_to=on_signature(signature)))
        await eventually(lambda: runner.counters["verdicts_received"])
        assert await search("cats") == blocked_result("block it")
        with pytest.raises(ToolBlocked):
            await strict("cats")
    await runner.close()
    outcomes = [event for event in bus.events if isinstance(event, ToolOutcome)]
    assert [outcome.tool for outcome in outcomes] == ["search", "search"]
