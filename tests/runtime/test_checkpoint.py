"""The checkpoint's order, with a broker that confirms only when told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from loopstream.runtime.rows import POSITION_HEADER
from loopstream.runtime.seal import SEAL_KEY, unpack_seal
from tests.faults.chain import EVERY, ChainFold, row_position
from tests.runtime.conftest import Bench

VERDICT = [[["run", number]] for number in range(EVERY)]


async def settle() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


@pytest.fixture
async def outbox(bench: Bench) -> asyncio.Task[None]:
    return asyncio.create_task(bench.core.outbox.run())


async def test_no_row_leaves_before_the_verdicts_are_durable(
    bench: Bench, outbox: asyncio.Task[None]
) -> None:
    bench.lane()
    await bench.feed(*VERDICT)
    taking = asyncio.create_task(bench.core.checkpointer.take())
    await settle()
    assert len(bench.to("verdicts")) == 1
    assert bench.to("changelog") == []
    assert bench.done == {}
    bench.confirm("verdicts")
    assert await taking
    assert bench.log[0] == "send verdicts"
    assert bench.log[-1] == f"done 0:{EVERY}"
    outbox.cancel()


async def test_the_marker_and_then_the_seal_come_last(bench: Bench) -> None:
    lane = bench.lane()
    await bench.feed([["a", 1]], [["b", 1]], [["a", 2]])
    assert await bench.core.checkpointer.take()
    keys = [record.key for record in bench.to("changelog")]
    assert set(keys[:2]) == {b"a", b"b"}
    assert keys[2:] == [b"\xffmarker0", SEAL_KEY]
    seal = unpack_seal(bench.to("changelog")[-1].value or b"")
    assert (seal.last_offset, seal.rows, seal.generation) == (2, 2, 1)
    assert lane.rows.count == 2
    assert {record.partition for record in bench.to("changelog")} == {0}


async def test_a_checkpoint_is_abandoned_when_the_partitions_go(
    bench: Bench, outbox: asyncio.Task[None]
) -> None:
    bench.lane()
    await bench.feed(*VERDICT)
    taking = asyncio.create_task(bench.core.checkpointer.take())
    await settle()
    bench.core.inlet.revoke()
    bench.confirm("verdicts")
    assert not await taking
    assert bench.to("changelog") == []
    assert bench.done == {}
    outbox.cancel()


async def test_offsets_of_a_checkpoint_that_lost_its_assignment_while_writing_do_not_count(
    bench: Bench,
) -> None:
    bench.lane()
    await bench.feed(*[[[f"r{n}", n]] for n in range(20)])
    taking = asyncio.create_task(bench.core.checkpointer.take())
    for _ in range(10):
        await asyncio.sleep(0)
    assert 0 < len(bench.to("changelog")) < 20
    bench.core.inlet.revoke()
    assert not await taking
    assert bench.done == {}
    assert SEAL_KEY not in {record.key for record in bench.to("changelog")}


async def test_a_refused_verdict_stops_the_checkpoint(
    bench: Bench, outbox: asyncio.Task[None]
) -> None:
    bench.lane()
    await bench.feed(*VERDICT)
    taking = asyncio.create_task(bench.core.checkpointer.take())
    await settle()
    bench.to("verdicts")[0].confirmation.set_exception(RuntimeError("too large"))
    with pytest.raises(RuntimeError, match="too large"):
        await taking
    assert bench.to("changelog") == []
    assert bench.done == {}
    outbox.cancel()


async def test_events_applied_during_a_checkpoint_belong_to_the_next(
    bench: Bench, outbox: asyncio.Task[None]
) -> None:
    lane = bench.lane()
    await bench.feed(*VERDICT)
    taking = asyncio.create_task(bench.core.checkpointer.take())
    await settle()
    await bench.feed([["run", 99]])
    bench.confirm("verdicts")
    assert await taking
    assert bench.done == {0: EVERY}
    assert row_position(lane.rows.get(b"run") or b"") == (0, EVERY - 1)
    assert await bench.core.checkpointer.take()
    assert bench.done == {0: EVERY + 1}
    outbox.cancel()


async def test_dead_rows_are_erased_after_a_seal_that_does_not_count_on_them(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ChainFold, "expired", lambda _self, row: row_position(row)[1] < 2)
    lane = bench.lane()
    await bench.feed([["a", 1]], [["b", 1]], [["c", 2]])
    bench.core.checkpointer._next_sweep = float("inf")
    assert await bench.core.checkpointer.take()
    bench.core.checkpointer._next_sweep = 0.0
    await bench.feed([["c", 3]])
    bench.sent.clear()
    assert await bench.core.checkpointer.take()
    *tail, last = bench.to("changelog")[-4:]
    assert last.key == SEAL_KEY
    assert tail[0].key == SEAL_KEY
    assert unpack_seal(tail[0].value or b"").rows == 1
    assert {(record.key, record.value) for record in tail[1:]} == {(b"a", None), (b"b", None)}
    assert {dict(record.headers)[POSITION_HEADER] for record in tail[1:]} == {b"0", b"1"}
    assert lane.rows.count == 1


async def test_a_dead_row_stays_until_the_commit_has_passed_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ChainFold, "expired", lambda _self, _row: True)
    lane = bench.lane()
    monkeypatch.setattr(bench.core.checkpointer._sweep, "_committed", lambda _partition: 1)
    await bench.feed([["a", 1]], [["b", 1]])
    assert await bench.core.checkpointer.take()
    assert lane.rows.get(b"a") is None
    assert lane.rows.get(b"b") is not None


async def test_live_states_are_bounded_in_all_partitions_together(
    bench: Bench, outbox: asyncio.Task[None]
) -> None:
    bench.core.checkpointer._max_live_runs = 10
    lanes = [bench.lane(number) for number in range(2)]
    await bench.feed(*[[[f"a{n}", n]] for n in range(30)], number=0)
    await bench.feed(*[[[f"b{n}", n]] for n in range(10)], number=1)
    assert await bench.core.checkpointer.take()
    assert [len(lane.fold.live) for lane in lanes] == [7, 2]
    # What was let go is read back from its row.
    await bench.feed([["a0", 30]], number=0)
    assert bench.core.lanes.dirty == 1
    assert await bench.core.checkpointer.take()
    assert row_position(lanes[0].rows.get(b"a0") or b"") == (0, 30)
    outbox.cancel()


async def test_a_live_state_that_no_row_tells_of_is_never_let_go(bench: Bench) -> None:
    lane = bench.lane()
    await bench.feed(*[[[f"r{n}", n]] for n in range(5)])
    bench.core.lanes.shrink(0)
    assert len(lane.fold.live) == 5
    assert await bench.core.checkpointer.take()
    bench.core.lanes.shrink(0)
    assert not lane.fold.live


async def test_others_have_their_turn_while_thousands_of_rows_are_written(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loopstream.runtime.checkpoint._BREATH_S", 0.0)
    lanes = [bench.lane(number) for number in range(3)]
    for number in range(3):
        await bench.feed(*[[[f"{number}/{n}", n]] for n in range(30)], number=number)

    async def at_once(*_: Any, **__: Any) -> asyncio.Future[Any]:
        return asyncio.get_running_loop().create_future()

    for lane in lanes:
        lane.changelog._send = at_once
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    waiting = asyncio.create_task(others())
    assert await bench.core.checkpointer.take()
    waiting.cancel()
    assert turns > 90


async def test_a_checkpoint_is_abandoned_when_the_partitions_go_during_its_snapshot(
    bench: Bench,
) -> None:
    bench.lane(0)
    bench.lane(1)
    await bench.feed([["a", 1]], number=0)
    await bench.feed([["b", 1]], number=1)
    taking = asyncio.create_task(bench.core.checkpointer.take())
    await asyncio.sleep(0)
    bench.core.inlet.revoke()
    assert not await taking
    assert bench.to("changelog") == []
    assert bench.done == {}
