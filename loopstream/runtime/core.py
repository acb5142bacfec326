"""The worker's parts, wired together: what happens when, without a word about Faust.

``collect`` runs after each slice, ``keep_time`` forever, ``open`` at each assignment, ``close`` at
the end. Faust's side of it is `loopstream.runtime.app`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from faust.types import ChannelT

from loopstream.events import DeadLetter, Verdict
from loopstream.runtime.applier import Applier
from loopstream.runtime.changelog import Audit
from loopstream.runtime.checkpoint import Checkpointer
from loopstream.runtime.fold import FoldFactory, RowPosition
from loopstream.runtime.hardening.stall import StallGuard
from loopstream.runtime.inlet import ChannelInlet
from loopstream.runtime.lanes import Lane, Lanes
from loopstream.runtime.opening import Opener, Start
from loopstream.runtime.outbox import Headers, Message, Outbox
from loopstream.runtime.pace import Pace
from loopstream.runtime.ports import ChangelogEnds, Committed, Done, Generation, SendRecord
from loopstream.runtime.probe import LogProbe
from loopstream.runtime.report import Reporter
from loopstream.runtime.sequencer import Sequencer
from loopstream.runtime.settings import WorkerSettings
from loopstream.runtime.sources import Sources
from loopstream.runtime.stats import Stats
from loopstream.runtime.store import RowStore
from loopstream.runtime.sweep import Sweep
from loopstream.runtime.topics import Topics
from loopstream.wire.signing import own_headers, verdict_headers
from loopstream.wire.verdicts import encode_model

TICK_S: Final = 0.25


class Core:
    """Everything between the consumer's batches and the producer's records."""

    def __init__(
        self,
        settings: WorkerSettings,
        partitions: int,
        factory: FoldFactory,
        marker_key: Callable[[int], bytes],
        position: RowPosition,
        *,
        channel: ChannelT[Any],
        store: Callable[[], RowStore],
        send: SendRecord,
        done: Done,
        generation: Generation,
        committed: Committed,
        changelog_ends: ChangelogEnds,
        fail: Callable[[BaseException], None],
    ) -> None:
        deployment = settings.deployment
        self.settings = settings
        self.topics = topics = Topics(deployment.prefix)
        self.stats = stats = Stats()
        headers = partial(own_headers, settings.signing_keys)
        self.reporter = Reporter(topics, traces=settings.traces)
        self.settled_epoch = -1
        self.lanes = Lanes()
        self.guard = StallGuard(settings.session_timeout_s)
        self.sources = Sources(settings.connection, topics.config, topics.commands)
        self.outbox = Outbox(send, stats.measures.verdict_durable)
        self.inlet = ChannelInlet(
            topics.events,
            channel,
            max_buffered_bytes=settings.max_buffered_bytes,
            full=self.full,
            fail=fail,
            stats=stats,
        )
        self.inlet.on_revoke(self._drop)
        self.opener = Opener(
            deployment,
            partitions,
            factory,
            marker_key,
            store,
            self.sources,
            topics,
            stats,
            send,
            headers,
        )
        self.applier = Applier(
            self.lanes,
            self.inlet,
            self.sources,
            self.guard,
            stats,
            collect=self.collect,
            first_at_or_after=LogProbe(settings.connection, topics.events).first_at_or_after,
        )
        self.checkpointer = Checkpointer(
            self.lanes,
            self.outbox,
            self.inlet,
            self.guard,
            stats,
            topics,
            send=send,
            done=done,
            generation=generation,
            sweep=Sweep(position, committed),
            audit=Audit(position, LogProbe(settings.connection, topics.changelog).read),
            changelog_ends=changelog_ends,
            max_live_runs=settings.max_live_runs,
            report=self.reporter.checkpoint,
        )
        self.sequencer = Sequencer(
            self.lanes, self.inlet, self.sources, stats, topics.events, send, headers
        )
        self._pace = Pace(
            settings.checkpoint_interval_s,
            settings.checkpoint_max_interval_s,
            settings.max_dirty_rows,
        )
        self._early = asyncio.Event()
        self._next_audit = time.monotonic() + settings.audit_interval_s

    def full(self) -> bool:
        """Whether fetching must pause: too many changed rows, or verdicts on their way."""
        return (
            self.lanes.dirty >= self.settings.max_dirty_rows
            or self.outbox.pending >= self.settings.max_pending_verdicts
        )

    def collect(self, lane: Lane) -> None:
        """Take what a fold has produced; never awaits."""
        fold = lane.fold
        if fold.verdicts:
            verdicts, fold.verdicts = fold.verdicts, []
            for scope, verdict in verdicts:
                self._put_verdict(scope, verdict, lane.number)
            self.stats.verdicts += len(verdicts)
        if fold.dead_letters:
            letters, fold.dead_letters = fold.dead_letters, []
            for letter in letters:
                self._put_dead_letter(letter, lane.number)
        if fold.counts:
            self.stats.notes.update(fold.counts)
            fold.counts.clear()
        if self.lanes.dirty >= self.settings.max_dirty_rows:
            self._early.set()

    def _put_verdict(self, scope: str, verdict: Verdict, partition: int) -> None:
        value = partial(encode_model, verdict, self.settings.verdict_format)
        appended = verdict.append_time
        self.outbox.put(
            Message(
                self.topics.verdicts,
                scope.encode(),
                value,
                partition,
                appended=appended,
                headers=self._signer(verdict.runner, scope),
            )
        )
        self.stats.actions[verdict.action] += 1
        kind = (verdict.detector, verdict.action.value, verdict.mode)
        self.stats.measures.verdicts[kind] += 1
        self.reporter.verdict(verdict)

    def _signer(self, runner: str | None, scope: str) -> Callable[[bytes], Headers] | None:
        keys = self.settings.signing_keys
        if not keys:
            return None
        return partial(verdict_headers, keys[0].issue(runner or ""), scope)

    def _put_dead_letter(self, letter: DeadLetter, partition: int) -> None:
        key = f"{letter.topic}-{letter.partition}@{letter.offset}#{letter.index}".encode()
        value = partial(encode_model, letter, self.settings.verdict_format)
        self.outbox.put(Message(self.topics.dead_letters, key, value, partition))
        self.stats.rejects[letter.code] += 1
        self.stats.dead_letters += 1
        self.reporter.dead_letter(letter)

    async def open(self, starts: Iterable[Start]) -> None:
        """Open the partitions of a new assignment, unless the next one has come meanwhile.

        Raises:
            CorruptStateError: rows are incomplete.
        """
        epoch = self.inlet.epoch
        lanes = await self.opener.open(starts)
        if epoch != self.inlet.epoch:
            return
        for lane in lanes:
            self.lanes.open(lane)
        self.inlet.open(self.lanes.numbers)
        self.settled()

    def settled(self) -> None:
        """The present assignment has all its partitions open, be it none at all."""
        self.settled_epoch = self.inlet.epoch
        self.stats.measures.partitions_open()

    def _drop(self) -> None:
        self.lanes.clear()
        self.outbox.clear()
        self.stats.measures.partitions_lost()

    async def tick(self) -> None:
        """Show signs of life, and look for failures that nobody waits for.

        Raises:
            StalledError: the process slept.
            Exception: a verdict was refused.
        """
        while True:
            self.guard.tick()
            if self.outbox.failure is not None:
                raise self.outbox.failure
            await asyncio.sleep(TICK_S)

    async def keep_time(self) -> None:
        """Checkpoint when it is time, and sequence what operators wrote.

        Raises:
            Exception: something was refused; nothing of it may be committed.
        """
        while True:
            await self._wait()
            await self.sequencer.append()
            applied = self.stats.notes["applied"]
            if not self.lanes.behind:
                self._pace.took(applied)
                self.checkpointer.last = time.monotonic()
                await self._audit_when_idle()
            elif self._pace.due(self.lanes.dirty, applied):
                await self.checkpointer.take()
                self._pace.took(applied)

    async def _audit_when_idle(self) -> None:
        if time.monotonic() >= self._next_audit:
            self._next_audit = time.monotonic() + self.settings.audit_interval_s
            await self.checkpointer.audit()

    async def _wait(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._early.wait(), self._pace.wait_s())
        self._early.clear()

    async def close(self) -> None:
        """Apply no more, and take the last checkpoint.

        Raises:
            Exception: as `Checkpointer.take`.
        """
        self.applier.closing = True
        if self.lanes.behind:
            await self.checkpointer.take()
