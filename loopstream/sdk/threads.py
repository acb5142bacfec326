"""The runner's two threads: one sends frames, one reads verdicts.

They are two because a consumer that waits for records can't be woken, and an event must not wait
for it. Both live through anything: a broken connection is closed and made anew, with growing
pauses; what was not confirmed is sent again, and verdicts are read on from where they were.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from loopstream.sdk.frames import Frame
from loopstream.sdk.hub import Hub
from loopstream.sdk.ports import In, Out, Refused

log: Final = logging.getLogger("loopstream.sdk")

_FIRST_PAUSE_S: Final = 0.25
_LAST_PAUSE_S: Final = 10.0
_IDLE_S: Final = 1.0
# How soon the reader notices a new run while it waits for records.
_POLL_S: Final = 0.05
_HEARTBEAT_S: Final = 5.0
_RECHECK_S: Final = 1.0
# No word of a frame for that long, which is longer than Kafka may take to give it up: kafka-python
# 3.0.12 stays silent for good if a batch expires while it is being tried again.
_STUCK_S: Final = 45.0
# Heartbeats missed in a row after which the connection is made anew.
_MISSED: Final = 3


class Worker(threading.Thread):
    """A daemon thread that runs sessions until it is stopped; a session ends by an error."""

    def __init__(self, hub: Hub, name: str) -> None:
        super().__init__(name=f"loopstream-{name}", daemon=True)
        self.hub = hub
        self.stopping = threading.Event()
        self._pause = _FIRST_PAUSE_S

    def run(self) -> None:
        """Thread body: sessions, with pauses between them that double."""
        while not self.stopping.is_set():
            try:
                self.session()
            except Exception as error:  # noqa: BLE001 - the thread must outlive any trouble
                self.lost(error)
                self.stopping.wait(self._pause)
                self._pause = min(self._pause * 2, _LAST_PAUSE_S)
        self.down()

    def lost(self, error: Exception) -> None:
        """The session does not work."""
        self.down()
        self.hub.complaints.say(
            self.name,
            "%s has no working connection to Kafka: %s. Agents go on (fail=%s).",
            self.name,
            error,
            self.hub.options.fail,
        )

    def up(self) -> None:
        """The session works."""
        self._pause = _FIRST_PAUSE_S

    def down(self) -> None:
        """There is no session that works."""
        raise NotImplementedError

    def session(self) -> None:
        """Connect, and work until stopped or broken."""
        raise NotImplementedError

    def stop(self) -> None:
        """Ask the thread to end soon."""
        self.stopping.set()
        self.hub.outbox.wake()


class Sender(Worker):
    """Takes frames out of the outbox and gives them to Kafka.

    Args:
        hub: the runner.
        connect: makes a producer; raises if Kafka is not reachable.
    """

    CLOSE_S: Final = 1.0

    def __init__(self, hub: Hub, connect: Callable[[], Out]) -> None:
        super().__init__(hub, "sender")
        self._connect = connect
        self._broken: Exception | None = None
        self._session = 0

    def down(self) -> None:
        """See `Worker`."""
        self.hub.link.sending = False

    def session(self) -> None:
        """See `Worker`."""
        out = self._connect()
        self._broken = None
        try:
            self.hub.outbox.route(out.partitions)
            self.hub.link.sending = True
            while not self.stopping.is_set():
                self._send(out)
                self.hub.outbox.wait(_IDLE_S)
        except Refused:
            return  # the connection is well, only the producer is spent
        finally:
            self._end_session(out)

    def _send(self, out: Out) -> None:
        """Send what is due.

        Raises:
            Exception: a frame failed, or one has been on its way for too long.
        """
        outbox = self.hub.outbox
        if self._broken is not None:
            raise self._broken
        if outbox.on_their_way(for_longer_than=_STUCK_S):
            raise TimeoutError(f"no word of a frame for {_STUCK_S:g} s")
        for frame in outbox.take():
            out.send(frame, partial(self._sent, self._session, frame))

    def _end_session(self, out: Out) -> None:
        """Close the producer; what is on its way must be over before anything is sent again."""
        outbox = self.hub.outbox
        out.close(self.CLOSE_S)
        deadline = time.monotonic() + self.CLOSE_S
        while outbox.on_their_way() and time.monotonic() < deadline:
            outbox.wait(_POLL_S)
        self._session += 1
        outbox.recall()

    def _sent(self, session: int, frame: Frame, error: Exception | None) -> None:
        """Called by Kafka's thread when the fate of a frame is known."""
        hub = self.hub
        if error is None:
            self.up()
            if hub.outbox.done(frame):
                hub.counters.add("frames_sent")
                hub.counters.add("events_sent", frame.events)
        elif session != self._session:
            return  # it was recalled, and is being sent again
        elif isinstance(error, Refused) and self._broken is None:
            # An idempotent producer that had a record refused refuses all that follow: those are
            # sent again by the next one.
            self._broken = error
            hub.counters.add("events_dropped", hub.outbox.drop(frame))
            hub.complaints.say("refused", "Kafka refused a frame: %s. It is dropped.", error)
        else:
            self._broken = error
            hub.link.sending = False
            hub.counters.add("frames_retried")
            hub.outbox.failed(frame)


class Reader(Worker):
    """Reads the verdicts of the partitions that live runs need, and no others.

    Args:
        hub: the runner.
        connect: makes a consumer; raises if Kafka is not reachable.
        clock: monotonic seconds.
    """

    def __init__(
        self, hub: Hub, connect: Callable[[], In], clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(hub, "reader")
        self._connect = connect
        self._clock = clock
        # Where to read on, by partition. It outlives sessions.
        self._positions: dict[int, int] = {}
        self._checked_at = 0.0
        self._missed = 0
        # Partitions that had unread records at the last heartbeat, and where we were in them.
        self._behind: dict[int, int] = {}
        # The same where connecting anew did not help: there is nothing to be read, after all.
        self._excused: dict[int, int] = {}

    def down(self) -> None:
        """See `Worker`."""
        self.hub.link.reading = False

    def session(self) -> None:
        """See `Worker`."""
        consumer = self._connect()
        self._behind = {}
        try:
            self._alive()
            self._checked_at = self._clock()
            consumer.assign(self._positions)
            while not self.stopping.is_set():
                self._follow(consumer)
                if self._positions:
                    self._read(consumer)
                else:
                    self.hub.outbox.wait_for_work(_IDLE_S)
        finally:
            consumer.close()

    def _follow(self, consumer: In) -> None:
        """Read the partitions that are wanted now: new ones from their end on."""
        outbox = self.hub.outbox
        wanted = outbox.wanted()
        fresh = wanted - self._positions.keys()
        stale = self._positions.keys() - wanted
        if fresh or stale:
            kept = {at: offset for at, offset in self._positions.items() if at in wanted}
            self._positions = {**kept, **(consumer.ends(fresh) if fresh else {})}
            consumer.assign(self._positions)
        if outbox.unopened():
            outbox.open(self._positions)

    def _read(self, consumer: In) -> None:
        records = consumer.poll(_POLL_S)
        for record in records:
            self._positions[record.partition] = record.offset + 1
            self.hub.deliver(record)
        if records:
            self._alive()
        if self._clock() - self._checked_at > (_RECHECK_S if self._missed else _HEARTBEAT_S):
            self._checked_at = self._clock()
            self._heartbeat(consumer)

    def _heartbeat(self, consumer: In) -> None:
        """Ask how far the partitions go: a consumer says nothing when its broker is gone."""
        try:
            ends = consumer.ends(self._positions)
        except Exception as error:
            self.lost(error)
            self._missed += 1
            if self._missed >= _MISSED:
                raise
        else:
            self._alive()
            self._notice_deafness(ends)

    def _notice_deafness(self, ends: Mapping[int, int]) -> None:
        """Raise if a partition has had unread records since the last heartbeat, and still has."""
        behind = {at: offset for at, offset in self._positions.items() if ends[at] > offset}
        stuck = {
            at: offset
            for at, offset in behind.items()
            if self._behind.get(at) == offset and self._excused.get(at) != offset
        }
        self._behind = behind
        if stuck:
            self._excused |= stuck
            raise ConnectionError(f"no verdicts arrive from partitions {sorted(stuck)}")

    def _alive(self) -> None:
        self.up()
        self._missed = 0
        self.hub.link.reading = True
