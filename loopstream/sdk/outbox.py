"""The buffer between agents and Kafka: bounded, one lane a partition, frames out of it.

A lane sends one frame at a time and the next when the broker has confirmed it, so that a frame
that has to be sent again can't be overtaken: numbers at or below the last applied are taken for
duplicates.

When the buffer is full the oldest events of the fullest lane go, for the newest say most about a
loop. What a run lost is told by an ``events_lost`` event in their place, with the number of the
last of them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Final

from loopstream.sdk.frames import HEAD_BYTES, Frame, Tally, join_frame
from loopstream.sdk.lanes import Entry, Lane, cost_of, mark, markers
from loopstream.sdk.stream import Stream
from loopstream.wire.limits import MAX_EVENTS_PER_FRAME

UNROUTED: Final = -1
FRAME_BYTES: Final = 512 * 1024
# Below this, making room frees more than the newcomer needs: once for many events.
_MIN_FREED: Final = 16 * 1024
_LINGER_OF_LANES_S: Final = 60.0
# The part of the linger that a lane may leave too early, where another leaves anyway.
_GO_ALONG: Final = 0.5
_AWAKE: Final = float("-inf")
# Numbers of events at which a lane's due time changes.
_TURNS: Final = frozenset({1, MAX_EVENTS_PER_FRAME})


class Outbox:
    """Events in, frames out. Safe to use from any thread.

    Args:
        clock: monotonic seconds.
        max_bytes: bound of what waits, in bytes.
        max_events: bound of what waits, in events.
        linger: seconds that an event may wait for company.
        on_lost: called with the number of events that were dropped.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        max_bytes: int,
        max_events: int,
        linger: float,
        on_lost: Callable[[int], None],
    ) -> None:
        self._clock = clock
        self._max_bytes = max_bytes
        self._max_events = max_events
        self._linger = linger
        self._on_lost = on_lost
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        # When the sender, asleep, means to wake up; long ago: it is awake and will look by itself.
        self._wakes_at = _AWAKE
        self._partitions: int | None = None
        self._lanes: dict[int, Lane] = {UNROUTED: Lane()}
        self._streams: set[Stream] = set()
        self._bytes = 0
        self._events = 0
        self._draining = False

    # Agents' side.

    def join(self, stream: Stream) -> None:
        """A run begins: its partition is wanted from now on."""
        with self._changed:
            self._streams.add(stream)
            self._lane_of(stream).runs += 1
            self._changed.notify_all()

    def leave(self, stream: Stream) -> None:
        """A run ended."""
        with self._changed:
            if stream in self._streams:
                self._streams.discard(stream)
                lane = self._lane_of(stream)
                lane.runs -= 1
                lane.used_at = self._clock()

    def add(self, stream: Stream, seq: int, time: int, data: bytes, urgent: bool = False) -> None:
        """Queue one event; ``urgent`` ones don't wait for company. Never blocks."""
        entry = Entry(stream, seq, time, data, cost_of(data))
        lost = 0
        with self._lock:
            fits = self._fits(entry)
            if not fits:
                lost = self._make_room(entry)
                fits = self._fits(entry)
            lane = self._lane_of(stream)
            if fits:
                self._append(lane, entry, urgent)
            else:
                self._lose(lane, entry)
                lost += 1
        if lost:
            self._on_lost(lost)

    # The sender's side.

    def route(self, partitions: int) -> None:
        """The number of partitions is known: sort what waits. Nothing may be on its way."""
        with self._changed:
            if partitions == self._partitions:
                return
            old = list(self._lanes.values())
            self._partitions = partitions
            self._lanes = {}
            for stream in self._streams:
                self._lane_of(stream).runs += 1
            for lane in old:
                self._resort(lane)
            self._changed.notify_all()

    def take(self) -> list[Frame]:
        """The frames that are due, one a lane at most; each goes to `done` or `failed` later.

        Lanes whose time would come soon go along: they share the request to the broker then, its
        answer, and the wake-ups of the threads.
        """
        with self._changed:
            now = self._clock()
            if self._until_due(now) > 0:
                return []
            soon = now + self._linger * _GO_ALONG
            due = [
                self._frame(partition, lane)
                for partition, lane in self._lanes.items()
                if self._is_due(lane, soon)
            ]
            for frame in due:
                lane = self._lanes[frame.partition]
                lane.sending, lane.again, lane.since = frame, None, now
            return due

    def done(self, frame: Frame) -> bool:
        """Kafka confirmed a frame; False if that was known."""
        with self._changed:
            lane = self._lanes.get(frame.partition)
            if lane is None or (lane.sending is not frame and lane.again is not frame):
                return False
            # A frame that was given up may be confirmed all the same, before it is sent again.
            lane.sending = lane.again = None
            lane.used_at = self._clock()
            self._bytes -= len(frame.value)
            self._events -= frame.events
            self._rouse(lane)
            return True

    def failed(self, frame: Frame) -> None:
        """A frame did not arrive, or nobody knows: it is sent again."""
        with self._changed:
            lane = self._lanes.get(frame.partition)
            # Else it was confirmed meanwhile, by a producer that had been given up.
            if lane is not None and lane.sending is frame:
                lane.sending, lane.again = None, frame
            self._changed.notify_all()

    def drop(self, frame: Frame) -> int:
        """A frame will never be taken: how many events are lost with it."""
        with self._changed:
            lane = self._lanes.get(frame.partition)
            if lane is None or lane.sending is not frame:
                return 0
            lane.sending = None
            self._bytes -= len(frame.value)
            self._events -= frame.events
            lost = sum(tally.lost - tally.known for tally in frame.tallies.values())
            # What can't even be told of is let go.
            if lost:
                for stream, tally in frame.tallies.items():
                    mark(lane, stream, tally)
            self._changed.notify_all()
            return lost

    def wait(self, longest: float) -> None:
        """Sleep until something is due, something changes, or ``longest`` seconds have passed."""
        with self._changed:
            now = self._clock()
            timeout = min(longest, self._until_due(now))
            if timeout > 0:
                self._wakes_at = now + timeout
                self._changed.wait(timeout)
                self._wakes_at = _AWAKE

    def wake(self) -> None:
        """End all `wait`s."""
        with self._changed:
            self._changed.notify_all()

    def stalled(self, longest: float) -> bool:
        """Whether a frame has been on its way for more than ``longest`` seconds, or failed."""
        with self._changed:
            now = self._clock()
            return any(
                lane.again is not None or (lane.sending is not None and now - lane.since > longest)
                for lane in self._lanes.values()
            )

    def on_their_way(self, for_longer_than: float = -1.0) -> bool:
        """Whether Kafka has had frames for longer than so many seconds, and not confirmed them."""
        with self._changed:
            now = self._clock()
            return any(
                lane.sending is not None and now - lane.since > for_longer_than
                for lane in self._lanes.values()
            )

    def recall(self) -> None:
        """Nobody will say what became of the frames on their way: they are sent again."""
        with self._changed:
            for lane in self._lanes.values():
                if lane.sending is not None:
                    lane.sending, lane.again = None, lane.sending
            self._changed.notify_all()

    # The reader's side.

    def wanted(self) -> set[int]:
        """The partitions whose verdicts are to be read; lanes that nobody needs any more close.

        A lane outlives its last run by a minute: the next run is often not far.
        """
        with self._changed:
            now = self._clock()
            for partition, lane in list(self._lanes.items()):
                idle = lane.runs == 0 and not lane.waits
                if partition != UNROUTED and idle and now - lane.used_at > _LINGER_OF_LANES_S:
                    del self._lanes[partition]
            return self._lanes.keys() - {UNROUTED}

    def open(self, partitions: Iterable[int]) -> None:
        """The reader's position in these partitions is fixed: their events may go."""
        with self._changed:
            for partition in partitions:
                if partition in self._lanes:
                    self._lanes[partition].open = True
            self._changed.notify_all()

    def unopened(self) -> set[int]:
        """The wanted partitions in which the reader has no position."""
        with self._changed:
            return {
                partition
                for partition, lane in self._lanes.items()
                if partition != UNROUTED and not lane.open
            }

    def wait_for_work(self, longest: float) -> None:
        """Sleep until a lane waits for the reader, or ``longest`` seconds have passed."""
        with self._changed:
            self._changed.wait_for(
                lambda: any(p != UNROUTED and not lane.open for p, lane in self._lanes.items()),
                longest,
            )

    # The end.

    def drain(self, timeout: float) -> bool:
        """Send what waits without lingering; True if all was confirmed in time."""
        with self._changed:
            self._draining = True
            self._changed.notify_all()
            try:
                return self._changed.wait_for(lambda: not self._pending(), timeout)
            finally:
                self._draining = False

    @property
    def pending(self) -> int:
        """Events that Kafka has not confirmed."""
        with self._changed:
            return self._pending()

    @property
    def size(self) -> int:
        """Bytes that wait."""
        with self._changed:
            return self._bytes

    # Under the lock.

    def _pending(self) -> int:
        return self._events + sum(len(lane.lost) for lane in self._lanes.values())

    def _lane_of(self, stream: Stream) -> Lane:
        partitions = self._partitions
        partition = UNROUTED if partitions is None else stream.partition(partitions)
        lane = self._lanes.get(partition)
        if lane is None:
            lane = self._lanes[partition] = Lane(used_at=self._clock())
        return lane

    def _fits(self, entry: Entry) -> bool:
        return self._events < self._max_events and self._bytes + entry.cost <= self._max_bytes

    def _append(self, lane: Lane, entry: Entry, urgent: bool) -> None:
        entries, cost = lane.entries, entry.cost
        if not entries:
            lane.first_at = self._clock()
        entries.append(entry)
        lane.cost += cost
        self._bytes += cost
        self._events += 1
        if urgent:
            lane.urgent = True
        # Only these change when the lane is due.
        if urgent or len(entries) in _TURNS or lane.cost > FRAME_BYTES:
            self._rouse(lane)

    def _rouse(self, lane: Lane) -> None:
        """Wake the sender if a lane changes its plans; and whoever waits for all to be sent."""
        due = lane.open and lane.sending is None and self._due_at(lane) < self._wakes_at
        if due or self._draining:
            self._changed.notify_all()

    def _make_room(self, entry: Entry) -> int:
        """Drop the oldest events of the fullest lane; how many."""
        goal = max(entry.cost, min(_MIN_FREED, self._max_bytes // 8))
        freed = count = 0
        while freed < goal or not self._fits(entry):
            lane = max(self._lanes.values(), key=lambda lane: lane.cost)
            if not lane.entries:
                break
            gone = self._pop(lane)
            self._lose(lane, gone)
            freed += gone.cost
            count += 1
        return count

    def _pop(self, lane: Lane) -> Entry:
        entry = lane.entries.popleft()
        lane.cost -= entry.cost
        self._bytes -= entry.cost
        self._events -= 1
        return entry

    def _lose(self, lane: Lane, entry: Entry) -> None:
        mark(lane, entry.stream, Tally(1, entry.seq, entry.time))

    def _resort(self, lane: Lane) -> None:
        """Move what waits in a lane to where it belongs now."""
        failed = lane.again
        if failed is not None:
            # It was made for another partition. Its events are gone as events; their count is not.
            self._bytes -= len(failed.value)
            self._events -= failed.events
            for stream, tally in failed.tallies.items():
                mark(self._lane_of(stream), stream, tally)
        for stream, tally in lane.lost.items():
            mark(self._lane_of(stream), stream, tally)
        while lane.entries:
            entry = self._pop(lane)
            self._append(self._lane_of(entry.stream), entry, lane.urgent)

    def _is_due(self, lane: Lane, now: float) -> bool:
        return lane.open and lane.sending is None and self._due_at(lane) <= now

    def _due_at(self, lane: Lane) -> float:
        if lane.again is not None or lane.urgent or self._draining:
            return 0.0 if lane.waits else float("inf")
        if len(lane.entries) >= MAX_EVENTS_PER_FRAME or lane.cost > FRAME_BYTES:
            return 0.0
        if lane.entries:
            return lane.first_at + self._linger
        return 0.0 if lane.lost else float("inf")

    def _until_due(self, now: float) -> float:
        due = [
            self._due_at(lane)
            for lane in self._lanes.values()
            if lane.open and lane.sending is None
        ]
        return min(due, default=float("inf")) - now

    def _frame(self, partition: int, lane: Lane) -> Frame:
        if lane.again is not None:
            return lane.again
        packed, tallies = markers(lane)
        # Survivors come after the news of what was lost before them.
        if not lane.lost:
            self._pack(lane, packed, tallies)
        lane.urgent &= bool(lane.entries)
        key = next(iter(tallies)).scope.encode() if len(tallies) == 1 else None
        frame = Frame(partition, key, join_frame(packed), tallies)
        self._bytes += len(frame.value)
        self._events += frame.events
        return frame

    def _pack(self, lane: Lane, packed: list[bytes], tallies: dict[Stream, Tally]) -> None:
        """Move what fits into a frame there."""
        entries, before, cost = lane.entries, len(packed), 0
        size = HEAD_BYTES + sum(map(len, packed))
        while entries and len(packed) < MAX_EVENTS_PER_FRAME:
            stream, seq, time, data, its_cost = entries[0]
            size += len(data)
            if packed and size > FRAME_BYTES:
                break
            entries.popleft()
            cost += its_cost
            packed.append(data)
            tally = tallies.get(stream)
            if tally is None:
                tallies[stream] = Tally(1, seq, time)
            else:
                tally.add_event(seq, time)
        lane.cost -= cost
        self._bytes -= cost
        self._events -= len(packed) - before
