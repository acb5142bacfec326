import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopstream.events import EventsLost, RunStarted
from loopstream.sdk.frames import Frame
from loopstream.sdk.outbox import FRAME_BYTES, Outbox
from loopstream.sdk.stream import Stream
from loopstream.wire.limits import MAX_EVENTS_PER_FRAME

from .fakes import PARTITIONS, Clock, opened

MAX_BYTES = 64 * 1024


class Box:
    """An outbox with a clock that stands still, and what it says it has lost."""

    def __init__(
        self, max_bytes: int = MAX_BYTES, max_events: int = 1000, linger: float = 0.0
    ) -> None:
        self.clock = Clock()
        self.lost = 0
        self.out = Outbox(self.clock, max_bytes, max_events, linger, self.note)

    def note(self, count: int) -> None:
        self.lost += count

    def put(self, stream: Stream, size: int = 10, urgent: bool = False) -> None:
        stream.next_id()
        packed = stream.pack("run_started", 1, {"filler": "x" * size})
        self.out.add(stream, stream.seq, 1, packed, urgent)

    def ready(self, partitions: int = PARTITIONS) -> "Box":
        self.out.route(partitions)
        self.out.open(range(partitions))
        return self


def stream_in(partition: int, name: str = "") -> Stream:
    """A run whose events go to a partition."""
    streams = (Stream(f"{name}{n}", 1, {"run": f"{name}{n}"}) for n in range(10_000))
    return next(s for s in streams if s.partition(PARTITIONS) == partition)


def joined(box: Box, *streams: Stream) -> None:
    for stream in streams:
        box.out.join(stream)


def seqs(frames: list[Frame]) -> list[int | None]:
    return [
        event.seq for frame in frames for event in opened(frame) if isinstance(event, RunStarted)
    ]


def test_nothing_goes_before_the_reader_is_in_place() -> None:
    box, stream = Box(), stream_in(1)
    joined(box, stream)
    box.put(stream)
    assert box.out.take() == []
    box.out.route(PARTITIONS)
    assert box.out.wanted() == box.out.unopened() == {1}
    assert box.out.take() == []
    box.out.open([1])
    (frame,) = box.out.take()
    assert (frame.partition, frame.key, frame.events) == (1, stream.scope.encode(), 1)


def test_a_lane_sends_one_frame_at_a_time_and_keeps_its_order() -> None:
    box, stream = Box(), stream_in(0)
    joined(box, stream)
    box.ready()
    box.put(stream)
    (first,) = box.out.take()
    box.put(stream)
    assert box.out.take() == []
    box.out.failed(first)
    assert box.out.take() == [first]
    box.out.done(first)
    (second,) = box.out.take()
    assert seqs([first, second]) == [1, 2]


def test_lanes_do_not_wait_for_each_other() -> None:
    box, one, two = Box(), stream_in(0), stream_in(1)
    joined(box, one, two)
    box.ready()
    box.put(one)
    box.out.take()
    box.put(two)
    assert [frame.partition for frame in box.out.take()] == [1]


def test_mixed_frames_have_no_key() -> None:
    box, one, two = Box(), stream_in(0, "a"), stream_in(0, "b")
    joined(box, one, two)
    box.ready()
    box.put(one)
    box.put(two)
    (frame,) = box.out.take()
    assert (frame.key, frame.events) == (None, 2)


def test_events_linger_unless_urgent_or_many() -> None:
    box, stream = Box(linger=0.5), stream_in(0)
    joined(box, stream)
    box.ready()
    box.put(stream)
    assert box.out.take() == []
    box.clock.now += 0.5
    (frame,) = box.out.take()
    box.out.done(frame)
    box.put(stream)
    box.put(stream, urgent=True)
    (frame,) = box.out.take()
    assert frame.events == 2


def test_lanes_that_are_nearly_due_go_along() -> None:
    box, one, two, three = Box(linger=1.0), stream_in(0), stream_in(1), stream_in(2)
    joined(box, one, two, three)
    box.ready()
    box.put(one)
    box.clock.now += 0.4
    box.put(two)
    box.clock.now += 0.4
    box.put(three)
    assert box.out.take() == []
    box.clock.now += 0.2
    assert {frame.partition for frame in box.out.take()} == {0, 1}
    assert box.out.take() == []
    box.clock.now += 0.8
    assert [frame.partition for frame in box.out.take()] == [2]


@pytest.mark.parametrize("how", ["first", "urgent", "many", "confirmed", "drained"])
def test_what_changes_the_senders_plans_wakes_it(how: str) -> None:
    linger = 0.0 if how in {"first", "confirmed"} else 600.0
    out, stream = Outbox(time.monotonic, 1 << 20, 10_000, linger, lambda _: None), stream_in(0)

    def put(urgent: bool = False) -> None:
        stream.next_id()
        out.add(stream, stream.seq, 1, b"x", urgent)

    out.join(stream)
    out.route(PARTITIONS)
    out.open(range(PARTITIONS))
    if how != "first":
        put()
    frames = out.take()
    if how == "confirmed":
        put()
    sender = threading.Thread(target=out.wait, args=(60.0,))
    sender.start()
    sender.join(0.1)  # asleep by now, or it will see for itself
    if how == "confirmed":
        out.done(frames[0])
    elif how == "drained":
        threading.Thread(target=out.drain, args=(0.1,)).start()
    else:
        for _ in range(MAX_EVENTS_PER_FRAME if how == "many" else 1):
            put(urgent=how == "urgent")
    sender.join(30.0)
    assert not sender.is_alive()


def test_frames_are_bounded_in_events_and_bytes() -> None:
    box, stream = Box(max_bytes=1 << 24, max_events=10_000), stream_in(0)
    joined(box, stream)
    box.ready()
    for _ in range(MAX_EVENTS_PER_FRAME + 1):
        box.put(stream)
    (frame,) = box.out.take()
    assert frame.events == MAX_EVENTS_PER_FRAME
    box.out.done(frame)
    (frame,) = box.out.take()
    assert frame.events == 1
    box.out.done(frame)
    for _ in range(3):
        stream.next_id()
        box.out.add(stream, stream.seq, 1, b"x" * (FRAME_BYTES // 2))
    (frame,) = box.out.take()
    assert len(frame.value) <= FRAME_BYTES


def test_a_full_buffer_drops_the_oldest_and_says_so() -> None:
    box, stream = Box(max_events=10), stream_in(0)
    joined(box, stream)
    for _ in range(15):
        box.put(stream)
    (frame,) = box.ready().out.take()
    marker, *rest = opened(frame)
    assert frame.events == 1 + len(rest)
    assert isinstance(marker, EventsLost)
    assert marker.count == box.lost == 15 - len(rest)
    assert [event.seq for event in rest if isinstance(event, RunStarted)] == list(
        range(box.lost + 1, 16)
    )
    # The marker takes the place of the last that is gone, so that numbers rise.
    assert marker.seq == box.lost


def test_the_fullest_lane_pays() -> None:
    box, noisy, quiet = Box(max_events=100), stream_in(0), stream_in(1)
    joined(box, noisy, quiet)
    box.ready()
    box.put(quiet)
    for _ in range(500):
        box.put(noisy)
    box.put(quiet)
    frames = {frame.partition: opened(frame) for frame in box.out.take()}
    assert [event.seq for event in frames[1] if isinstance(event, RunStarted)] == [1, 2]
    assert isinstance(frames[0][0], EventsLost)


def test_a_loss_is_told_even_if_nothing_else_is_left() -> None:
    box, stream = Box(max_bytes=MAX_BYTES), stream_in(0)
    joined(box, stream)
    box.ready()
    stream.next_id()
    box.out.add(stream, 1, 1, b"x" * (MAX_BYTES + 1))
    (frame,) = box.out.take()
    (marker,) = opened(frame)
    assert isinstance(marker, EventsLost)
    assert (marker.count, marker.seq, box.lost) == (1, 1, 1)


def test_a_refused_frame_becomes_a_loss_of_all_it_stood_for() -> None:
    box, stream = Box(max_events=2), stream_in(0)
    joined(box, stream)
    for _ in range(5):
        box.put(stream)
    (frame,) = box.ready().out.take()
    assert box.out.drop(frame) == 5 - box.lost
    (frame,) = box.out.take()
    (marker,) = opened(frame)
    assert isinstance(marker, EventsLost)
    assert (marker.count, marker.seq) == (5, 5)
    # What can't even be told of is let go.
    assert box.out.drop(frame) == 0
    assert box.out.take() == []
    assert (box.out.pending, box.out.size) == (0, 0)


def test_other_partitions_sort_what_waits_anew() -> None:
    box, stream = Box(), stream_in(3)
    joined(box, stream)
    box.ready()
    box.put(stream)
    (frame,) = box.out.take()
    box.out.failed(frame)
    box.put(stream)
    box.ready(1)
    (frame,) = box.out.take()
    marker, event = opened(frame)
    assert isinstance(marker, EventsLost)
    assert (frame.partition, marker.count, event.seq) == (0, 1, 2)


def test_a_lane_outlives_its_last_run_by_a_minute() -> None:
    box, stream = Box(), stream_in(2)
    joined(box, stream)
    box.ready()
    box.out.leave(stream)
    box.out.leave(stream)
    box.clock.now += 59
    assert box.out.wanted() == {2}
    box.clock.now += 2
    assert box.out.wanted() == set()
    box.out.join(stream)
    # It was not read meanwhile: the reader has to find its place again.
    assert box.out.unopened() == {2}


def test_a_lane_that_waits_is_kept() -> None:
    box, stream = Box(), stream_in(2)
    joined(box, stream)
    box.out.route(PARTITIONS)
    box.put(stream)
    box.out.leave(stream)
    box.clock.now += 600
    assert box.out.wanted() == {2}


def test_a_frame_that_takes_long_is_noticed() -> None:
    box, stream = Box(), stream_in(0)
    joined(box, stream)
    box.ready()
    box.put(stream)
    (frame,) = box.out.take()
    assert not box.out.stalled(5)
    box.clock.now += 6
    assert box.out.stalled(5)
    assert box.out.on_their_way(for_longer_than=5)
    assert not box.out.on_their_way(for_longer_than=7)
    assert box.out.done(frame)
    assert not box.out.on_their_way()
    assert not box.out.stalled(5)


def test_a_frame_that_was_recalled_may_be_confirmed_late() -> None:
    box, stream = Box(), stream_in(0)
    joined(box, stream)
    box.ready()
    box.put(stream)
    (frame,) = box.out.take()
    box.out.recall()
    assert not box.out.on_their_way()
    assert box.out.done(frame)
    assert not box.out.done(frame)
    assert (box.out.take(), box.out.pending, box.out.size) == ([], 0, 0)


def test_a_frame_that_is_confirmed_cannot_fail_any_more() -> None:
    box, stream = Box(), stream_in(0)
    joined(box, stream)
    box.ready()
    box.put(stream)
    (frame,) = box.out.take()
    box.out.recall()
    box.out.take()
    box.out.done(frame)
    box.out.failed(frame)
    assert box.out.drop(frame) == 0
    assert (box.out.take(), box.out.pending, box.out.size) == ([], 0, 0)


def test_a_frame_that_was_recalled_is_sent_again() -> None:
    box, stream = Box(), stream_in(0)
    joined(box, stream)
    box.ready()
    box.put(stream)
    (frame,) = box.out.take()
    box.out.recall()
    box.put(stream)
    assert box.out.take() == [frame]
    box.out.done(frame)
    assert seqs(box.out.take()) == [2]


def test_draining_ends_when_all_is_confirmed() -> None:
    box, stream = Box(linger=60), stream_in(0)
    joined(box, stream)
    box.ready()
    assert box.out.drain(0)
    box.put(stream)
    assert not box.out.drain(0)
    assert box.out.pending == 1


adding = st.tuples(st.just("add"), st.integers(0, 5), st.integers(0, 40_000))
acting = st.tuples(
    st.sampled_from(["take", "done", "fail", "drop", "route", "recall"]),
    st.integers(0, 3),
    st.just(0),
)


@settings(max_examples=200)
@given(st.lists(adding | acting, max_size=80), st.integers(2, 30))
def test_bounded_complete_and_in_order(steps: list[tuple[str, int, int]], max_events: int) -> None:
    """Whatever happens: the buffer is bounded, each event arrives once or is told of as lost."""
    box = Box(max_events=max_events)
    streams = [stream_in(n % PARTITIONS, f"s{n}-") for n in range(6)]
    joined(box, *streams)
    flying: list[Frame] = []
    arrived: list[Frame] = []
    marker_room = len(streams) * 200

    def one_of(at: int) -> Frame:
        return flying.pop(at % len(flying))

    def done(at: int) -> None:
        frame = one_of(at)
        arrived.append(frame)
        box.out.done(frame)

    def recall(_: int) -> None:
        box.out.recall()
        flying.clear()

    def drop(at: int) -> None:
        frame = one_of(at)
        if box.out.drop(frame) == 0:
            # Nothing but markers: that there was a loss is now known to the runner alone.
            arrived.append(frame)

    acts: dict[str, Callable[[int], object]] = {
        "take": lambda _: flying.extend(box.out.take()),
        "done": done,
        "fail": lambda at: box.out.failed(one_of(at)),
        "drop": drop,
        "route": lambda _: box.ready(),
        "recall": recall,
    }
    for name, at, size in steps:
        if name == "add":
            box.put(streams[at], size)
        elif flying or name in {"take", "route", "recall"}:
            acts[name](at)
        assert box.out.size <= MAX_BYTES + marker_room
        assert box.out.pending <= max_events + len(streams) * 2
    arrived += flushed(box, flying)
    assert (box.out.pending, box.out.size) == (0, 0)
    told, seen = tallied(arrived)
    for stream in streams:
        assert seen[stream.scope] == sorted(set(seen[stream.scope]))
        assert told[stream.scope] == stream.seq


def flushed(box: Box, flying: list[Frame]) -> Iterator[Frame]:
    box.ready()
    while flying or (flying := box.out.take()):
        for frame in flying:
            yield frame
            box.out.done(frame)
        flying = []


def tallied(frames: list[Frame]) -> tuple[dict[str, int], dict[str, list[int]]]:
    """Per run: how many events arrived or are told of as lost, and the numbers that arrived."""
    told: dict[str, int] = defaultdict(int)
    seen: dict[str, list[int]] = defaultdict(list)
    for frame in frames:
        for event in opened(frame):
            assert isinstance(event, EventsLost | RunStarted)
            assert event.run is not None
            assert event.seq is not None
            told[event.run] += event.count if isinstance(event, EventsLost) else 1
            seen[event.run].append(event.seq)
    return told, seen


@pytest.mark.parametrize("partitions", [1, 7])
def test_routing_twice_changes_nothing(partitions: int) -> None:
    box, stream = Box(), stream_in(0)
    joined(box, stream)
    box.ready(partitions)
    box.put(stream)
    box.ready(partitions)
    (frame,) = box.out.take()
    assert frame.events == 1
