"""What happened in a run, event by event: its partition replayed when a page asks for it."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import OrderedDict, deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from loopstream.config import Settings
from loopstream.replay.explain import Told, explain
from loopstream.replay.kafka import KafkaSource
from loopstream.replay.run import Job
from loopstream.replay.story import Entry
from loopstream.runtime.settings import worker_settings
from loopstream.runtime.topics import Topics
from loopstream.web.bounded import BoundedSource

MAX_ENTRIES: Final = 600
"""Events that a page shows: the newest ones."""
MAX_S: Final = 20.0
_KEPT: Final = 8
_FRESH_S: Final = 2.0
_AT_ONCE: Final = 2

Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Happened:
    """A run as it was replayed.

    Attributes:
        hidden: number of earlier events that are left out.
        settings: entries at which other settings came into force, also of those left out.
    """

    entries: list[Entry]
    hidden: int
    settings: list[Entry]
    facts: dict[str, Any]
    notes: list[str]
    seconds: float


class Stories:
    """Replays runs, two at a time, each once however many pages ask; keeps the newest few.

    Args:
        settings: of the process.
        seconds: how long one replay may read.
    """

    def __init__(self, settings: Settings, seconds: float = MAX_S) -> None:
        self._settings = settings
        self._seconds = seconds
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._under_way: dict[Key, asyncio.Task[Happened]] = {}
        self._kept: OrderedDict[Key, tuple[float, Happened]] = OrderedDict()

    async def tell(self, scope: str, said: int) -> Happened:
        """What happened in a run, as of at most two seconds ago.

        Args:
            said: names the newest verdict on it that is known: a story from before is not told.

        Raises:
            LoopstreamError: the log has nothing of it, is too long, or Kafka does not answer.
        """
        key = (scope, said)
        kept = self._kept.get(key)
        if kept is not None and time.monotonic() - kept[0] < _FRESH_S:
            return kept[1]
        task = self._under_way.get(key)
        if task is None:
            task = asyncio.create_task(self._replay(key))
            self._under_way[key] = task
            task.add_done_callback(lambda _: self._under_way.pop(key, None))
        # One page that leaves must not take the answer from another.
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Give up what is under way."""
        for task in list(self._under_way.values()):
            task.cancel()
        await asyncio.gather(*self._under_way.values(), return_exceptions=True)

    async def _replay(self, key: Key) -> Happened:
        async with self._turns:
            source = BoundedSource(self._source(), self._seconds)
            try:
                happened = await asyncio.to_thread(self._fold, source, key[0])
            finally:
                source.gone.set()
        self._kept[key] = (time.monotonic(), happened)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return happened

    def _source(self) -> KafkaSource:
        settings, topics = self._settings, Topics(self._settings.prefix)
        return KafkaSource(
            settings.connection, topics.events, topics.config, topics.commands, settings.timeout_s
        )

    def _fold(self, source: BoundedSource, scope: str) -> Happened:
        began = time.monotonic()
        told_settings = worker_settings(self._settings)
        job = Job(
            source=source,
            deployment=told_settings.deployment,
            key=told_settings.tenant_key,
            verifier=told_settings.verifier,
        )
        told, count = Told(scope), 0
        newest: deque[Entry] = deque(maxlen=MAX_ENTRIES)
        settings: deque[Entry] = deque(maxlen=20)
        with tempfile.TemporaryDirectory(prefix="loopstream-web-") as folder:
            for entry in explain(job, scope, Path(folder), told):
                count += 1
                newest.append(entry)
                if "settings" in entry:
                    settings.append(entry)
        if told.partial:
            told.notes.append("The run had begun before the log does: its counts may be too low.")
        return Happened(
            list(newest),
            count - len(newest),
            list(settings),
            told.identity,
            told.notes,
            time.monotonic() - began,
        )
