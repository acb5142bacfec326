"""Follows the topics in a thread of its own, without a group, and hands what comes to the board.

It hands over one batch at a time and waits until it was taken up: what can't be shown yet stays in
Kafka. When Kafka is away it tries again, from where it was.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Mapping
from typing import Final

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from loopstream.config import Settings
from loopstream.errors import LoopstreamError, TopicsError
from loopstream.replay.kafka import connected
from loopstream.runtime.topics import Topics
from loopstream.web.board import Board, News
from loopstream.web.records import news_of
from loopstream.web.ring import MAX_VERDICTS, Said

_POLL_MS: Final = 200
_QUIET_S: Final = 5.0
_CLOSE_S: Final = 1.0
_RETRY_S: Final = 1.0
_LOG: Final = logging.getLogger("loopstream.web")


class Feed:
    """Reads until it is closed.

    Args:
        board: filled on ``loop``, which must be running.

    Raises:
        SettingsError: the keys of signed verdicts can't be read.
    """

    def __init__(self, settings: Settings, board: Board, loop: asyncio.AbstractEventLoop) -> None:
        self._settings = settings
        self._topics = Topics(settings.prefix)
        self._keys = settings.signing.read()
        self._board = board
        self._loop = loop
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)
        self._nexts: dict[TopicPartition, int] = {}
        self.failure: LoopstreamError | None = None
        self.failed = asyncio.Event()
        self._answered = 0.0

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def close(self) -> None:
        """Stop reading; waits a moment for the thread, which never waits for the event loop then.

        With Kafka away it may be waiting for an answer: it is left to that, and ends with us.
        """
        self._stop.set()
        self._thread.join(_CLOSE_S)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with connected(self._settings.connection, self._settings.timeout_s) as client:
                    self._follow(client)
            except LoopstreamError as error:
                if self._stop.is_set():
                    return
                self.failure = error
                self._loop.call_soon_threadsafe(self.failed.set)
                _LOG.warning("%s", error)
                self._tell_connected(False)
            except Exception:  # noqa: BLE001 - see below
                if self._stop.is_set():
                    return
                # Whatever it was, the pages must not stand still for ever without a word.
                _LOG.exception("reading failed; trying again")
                self._tell_connected(False)
            self._stop.wait(_RETRY_S)

    def _follow(self, client: KafkaConsumer) -> None:
        parts = self._partitions(client)
        client.assign(parts)
        ends = client.end_offsets(parts, timeout_ms=self._millis)
        if not self._nexts:
            self._nexts = self._beginnings(client, parts, ends)
            of_verdicts = [part for part in parts if part.topic == self._topics.verdicts]
            nexts = [self._nexts[part] for part in of_verdicts]
            self._loop.call_soon_threadsafe(self._board.begin, nexts)
        for part, offset in self._nexts.items():
            client.seek(part, offset)
        self._catch_up(client, ends)
        self._tell_connected(True)
        self._loop.call_soon_threadsafe(self._board.ready.set)
        while not self._stop.is_set():
            if news := self._read(client):
                self._hand_over(news)
            else:
                self._look_after(client, parts[0])

    def _partitions(self, client: KafkaConsumer) -> list[TopicPartition]:
        topics, found = self._topics, []
        for topic in (topics.verdicts, topics.runs, topics.config, topics.commands):
            numbers = client.partitions_for_topic(topic)
            if not numbers:
                hint = "Create the topics with: loopstream topics create"
                raise TopicsError("the topic does not exist.", where=topic, hint=hint)
            found += [TopicPartition(topic, number) for number in sorted(numbers)]
        return found

    def _beginnings(
        self,
        client: KafkaConsumer,
        parts: list[TopicPartition],
        ends: Mapping[TopicPartition, int],
    ) -> dict[TopicPartition, int]:
        """All of the compacted topics; of each partition's verdicts the newest ones."""
        begins: dict[TopicPartition, int] = client.beginning_offsets(parts, timeout_ms=self._millis)
        of_verdicts = sum(part.topic == self._topics.verdicts for part in parts)
        share = -(-MAX_VERDICTS // of_verdicts)
        return {
            part: max(begin, ends[part] - share) if part.topic == self._topics.verdicts else begin
            for part, begin in begins.items()
        }

    def _catch_up(self, client: KafkaConsumer, ends: Mapping[TopicPartition, int]) -> None:
        """Read what is there already; the verdicts of all partitions by their time."""
        said: list[Said] = []
        while not self._stop.is_set():
            news = self._read(client)
            said += [item for item in news if isinstance(item, Said)]
            self._hand_over([item for item in news if not isinstance(item, Said)])
            if len(said) > 2 * MAX_VERDICTS or self._reached(client, ends):
                break
        said.sort(key=lambda item: item.verdict.append_time)
        self._hand_over(list(said))

    def _reached(self, client: KafkaConsumer, ends: Mapping[TopicPartition, int]) -> bool:
        return all((client.position(part) or 0) >= end for part, end in ends.items())

    def _read(self, client: KafkaConsumer) -> list[News]:
        news: list[News] = []
        for part, records in client.poll(timeout_ms=_POLL_MS).items():
            items = (news_of(record, self._topics, self._keys) for record in records)
            news += [item for item in items if item is not None]
            self._nexts[part] = records[-1].offset + 1
        return news

    def _look_after(self, client: KafkaConsumer, part: TopicPartition) -> None:
        """Nothing came: is Kafka still there? The client itself would wait for ever, in silence."""
        if time.monotonic() - self._answered < _QUIET_S:
            return
        try:
            client.end_offsets([part], timeout_ms=self._millis)
        except KafkaError as error:
            self._tell_connected(False)
            _LOG.warning("Kafka does not answer (%s)", type(error).__name__)
        else:
            self._tell_connected(True)
        self._answered = time.monotonic()

    def _hand_over(self, news: list[News]) -> None:
        if not news or self._stop.is_set():
            return
        future = asyncio.run_coroutine_threadsafe(self._take(news), self._loop)
        while not self._stop.is_set():
            try:
                future.result(0.5)
            except TimeoutError:
                continue
            break
        self._answered = time.monotonic()

    async def _take(self, news: list[News]) -> None:
        self._board.take(news)

    def _tell_connected(self, connected: bool) -> None:
        def tell() -> None:
            if self._board.connected is not connected:
                self._board.connected = connected
                self._board.wake()

        self._answered = time.monotonic()
        if not self._stop.is_set():
            self._loop.call_soon_threadsafe(tell)

    @property
    def _millis(self) -> int:
        return int(self._settings.timeout_s * 1000)
