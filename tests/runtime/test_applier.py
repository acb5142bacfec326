"""Applying batches: order, staleness, bounds, control records."""

from __future__ import annotations

import asyncio

import pytest

from loopstream.events import Control
from loopstream.runtime.hardening.continuity import ContinuityError
from loopstream.runtime.inlet import Batch
from loopstream.wire.codec import encode_frame
from tests.runtime.conftest import Bench, FakeRecord


async def test_a_stale_batch_is_dropped(bench: Bench) -> None:
    bench.lane()
    await bench.core.inlet.deliver(0, [FakeRecord(0, b"\x90")], 1)
    bench.core.inlet.revoke()
    lane = bench.lane()
    await bench.core.applier.consume(bench.channel.batches[0])
    assert lane.next_offset == 0
    assert bench.core.stats.stale_batches == 1
    assert bench.core.inlet.buffered == 0


async def test_the_rest_of_a_batch_is_dropped_when_the_assignment_goes(bench: Bench) -> None:
    lane = bench.lane()
    records = [FakeRecord(offset, b"\x90") for offset in range(2_000)]
    await bench.core.inlet.deliver(0, records, 1)
    consuming = asyncio.create_task(bench.core.applier.consume(bench.channel.batches[0]))
    await asyncio.sleep(0)
    assert 0 < lane.next_offset < 2_000
    bench.core.inlet.revoke()
    await consuming
    assert lane.next_offset < 2_000


async def test_a_hole_ends_the_worker(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async def first(partition: int, offset: int) -> int:
        return offset

    monkeypatch.setattr(bench.core.applier, "_first_at_or_after", first)
    bench.lane()
    await bench.feed([["a", 1]])
    with pytest.raises(ContinuityError, match="expected offset 1, got 3"):
        await bench.feed([["a", 2]], start=3)


async def test_a_hole_of_the_log_itself_is_counted(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def first(partition: int, offset: int) -> int:
        return 3

    monkeypatch.setattr(bench.core.applier, "_first_at_or_after", first)
    lane = bench.lane()
    await bench.feed([["a", 1]])
    await bench.feed([["a", 2]], start=3)
    assert lane.next_offset == 4
    assert bench.core.stats.jumps == 2


async def test_a_control_record_waits_for_its_source_and_is_refused_beyond_its_end(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    caught_up: list[bool] = []

    async def catch_up() -> None:
        caught_up.append(True)

    monkeypatch.setattr(bench.core.sources, "catch_up", catch_up)
    lane = bench.lane()
    forged = Control(
        v=1, type="control", time=0, source="config", offset=7, sha256=b"x" * 32, key="*", body="{}"
    )
    record = FakeRecord(0, encode_frame([forged]))
    await bench.core.applier.consume(Batch(0, [record], 1, bench.core.inlet.epoch))
    assert caught_up == [True]
    assert bench.core.stats.dead_letters == 1
    await bench.feed([["a", 1]])
    assert bench.core.stats.dead_letters == 1
    assert lane.next_offset == 2


async def test_fetching_pauses_for_want_of_room(bench: Bench) -> None:
    bench.lane()
    assert bench.core.inlet.accepts(0)
    assert not bench.core.inlet.accepts(1), "not open"
    await bench.core.inlet.deliver(0, [FakeRecord(n, b"\x90") for n in range(1_000)], 1)
    assert not bench.core.inlet.accepts(0), "records not applied"
    await bench.core.applier.consume(bench.channel.batches[0])
    assert bench.core.inlet.accepts(0)
    await bench.feed(*[[[f"r{n}", n]] for n in range(100)])
    assert not bench.core.inlet.accepts(0), "too many changed rows"
    assert await bench.core.checkpointer.take()
    assert bench.core.inlet.accepts(0)
    for number in range(50):
        await bench.feed(*[[["one", number]]] * 10)
    assert bench.core.outbox.pending >= 50
    assert not bench.core.inlet.accepts(0), "too many verdicts on their way"


async def test_a_long_batch_of_one_partition_holds_up_no_other(bench: Bench) -> None:
    hot, cold = bench.lane(0), bench.lane(1)
    await bench.core.inlet.deliver(0, [FakeRecord(n, b"\x90") for n in range(5_000)], 1)
    await bench.core.inlet.deliver(1, [FakeRecord(n, b"\x90") for n in range(10)], 1)
    await bench.core.applier.consume(bench.channel.batches[0])
    assert 0 < hot.next_offset < 5_000, "the other batch was not taken"
    consuming = asyncio.create_task(bench.core.applier.consume(bench.channel.batches[1]))
    while cold.next_offset < 10:
        await asyncio.sleep(0)
    assert hot.next_offset < 5_000
    await consuming
    assert hot.next_offset == 5_000
    assert bench.core.inlet.buffered == 0


async def test_batches_of_a_partition_stay_in_order_between_those_of_others(bench: Bench) -> None:
    lanes = [bench.lane(number) for number in range(3)]
    for start in (0, 700, 1_400):
        for number in range(3):
            records = [FakeRecord(start + n, b"\x90") for n in range(700)]
            await bench.core.inlet.deliver(number, records, 1)
    for batch in bench.channel.batches:
        await bench.core.applier.consume(batch)
    assert [lane.next_offset for lane in lanes] == [2_100] * 3
    assert bench.core.stats.jumps == 0


async def test_a_partition_with_a_long_lag_leaves_the_others_their_room(bench: Bench) -> None:
    bench.lane(0)
    bench.lane(1)
    await bench.core.inlet.deliver(0, [FakeRecord(n, b"x" * 1_000) for n in range(500)], 1)
    assert not bench.core.inlet.accepts(0)
    assert bench.core.inlet.accepts(1)


async def test_room_is_counted_in_bytes(bench: Bench) -> None:
    bench.lane(0)
    await bench.core.inlet.deliver(0, [FakeRecord(0, b"x" * 1_000_000)], 1)
    assert not bench.core.inlet.accepts(0)
    bench.core.inlet.revoke()
    bench.lane(0)
    assert bench.core.inlet.accepts(0)


async def test_batches_that_a_rebalance_swallows_hold_nothing_up(bench: Bench) -> None:
    bench.lane()
    for start in (0, 10):
        await bench.core.inlet.deliver(0, [FakeRecord(start + n, b"\x90") for n in range(10)], 1)
    bench.core.inlet.revoke()  # Faust clears its queues: the agent never sees these two
    lane = bench.lane()
    await bench.core.inlet.deliver(0, [FakeRecord(n, b"\x90") for n in range(2_000)], 1)
    await bench.core.applier.consume(bench.channel.batches[-1])
    assert lane.next_offset == 2_000
    assert bench.core.inlet.accepts(0)


async def test_stale_batches_that_come_all_the_same_are_not_counted(bench: Bench) -> None:
    bench.lane()
    await bench.core.inlet.deliver(0, [FakeRecord(n, b"\x90") for n in range(10)], 1)
    bench.core.inlet.revoke()
    lane = bench.lane()
    await bench.core.inlet.deliver(0, [FakeRecord(n, b"\x90") for n in range(10)], 1)
    for batch in bench.channel.batches:
        await bench.core.applier.consume(batch)
    assert lane.next_offset == 10
    assert bench.core.inlet.waiting == 0


@pytest.fixture
def most(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> int:
    """Changed rows that there is room for; slices are small beside them."""
    monkeypatch.setattr("loopstream.runtime.applier.SLICE_RECORDS", 10)
    return bench.core.settings.max_dirty_rows


async def test_what_is_buffered_changes_no_more_rows_than_there_is_room_for(
    bench: Bench, most: int
) -> None:
    lane = bench.lane()
    feeding = asyncio.create_task(bench.feed(*[[[f"r{n}", n]] for n in range(3 * most)]))
    for laps in range(1, 4):
        while lane.next_offset < laps * most:
            assert bench.core.lanes.dirty <= most
            await asyncio.sleep(0)
        assert lane.next_offset == laps * most
        assert await bench.core.checkpointer.take()
    await feeding
    assert lane.rows.count == 3 * most


async def test_a_batch_that_waits_for_room_goes_with_its_assignment(
    bench: Bench, most: int
) -> None:
    lane = bench.lane()
    feeding = asyncio.create_task(bench.feed(*[[[f"r{n}", n]] for n in range(2 * most)]))
    while lane.next_offset < most:
        await asyncio.sleep(0)
    bench.core.inlet.revoke()
    await feeding
    assert lane.next_offset == most
    assert bench.core.stats.stale_batches == 1
