"""What the fleet should have said and kept: the whole topic through the pure engine, on the side.

It follows the events while they come, so that there is little left to do at the end. Whatever the
workers publish is held against it byte for byte.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from loopstream.events import ControlSource, DeadLetter, Pin, Verdict
from loopstream.partition import (
    MARKER_PREFIX,
    Partition,
    deployment_from_pin,
    row_position,
    state_from_pin,
)
from loopstream.runtime.rows import MemoryRows, Merge
from loopstream.runtime.topics import Topics
from loopstream.wire.codec import decode_record
from loopstream.wire.verdicts import decode_dead_letter, decode_verdict, encode_model

_LIVE: Final = 3_000
_TAKE_EVERY: Final = 2_000
_EXAMPLES: Final = 5
Digests = dict[str, bytes]


class Reader:
    """Reads a topic from its begin, as far as it has grown."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self._tps = [TopicPartition(topic, number) for number in range(partitions)]
        self._client = KafkaConsumer(
            bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False
        )
        self._client.assign(self._tps)
        self._client.seek_to_beginning(*self._tps)

    def ends(self) -> dict[TopicPartition, int]:
        return dict(self._client.end_offsets(self._tps))

    def some(self) -> Iterator[Any]:
        """Records that came, waiting a moment for them."""
        for batch in self._client.poll(timeout_ms=200, max_records=2_000).values():
            yield from batch

    def reached(self, ends: dict[TopicPartition, int]) -> bool:
        return all((self._client.position(tp) or 0) >= end for tp, end in ends.items())

    def rest(self) -> Iterator[Any]:
        """All up to the present end."""
        ends = self.ends()
        while not self.reached(ends):
            yield from self.some()

    def close(self) -> None:
        self._client.close()


@dataclass(frozen=True, slots=True)
class Source:
    """A record of the config or commands topic."""

    offset: int
    key: str
    value: bytes | None


class Sources:
    """The operators' topics; a record is there before any copy of it is."""

    def __init__(self, bootstrap: str, topics: Topics) -> None:
        self._readers: dict[str, Reader] = {
            "config": Reader(bootstrap, topics.config, 1),
            "commands": Reader(bootstrap, topics.commands, 1),
        }
        self._records: dict[tuple[str, int], Source] = {}

    def read(self) -> None:
        for source, reader in self._readers.items():
            for record in reader.rest():
                key = record.key.decode()
                self._records[source, record.offset] = Source(record.offset, key, record.value)

    def lookup(self, source: ControlSource, offset: int) -> Source | None:
        return self._records.get((source, offset))

    def next_offset(self, source: ControlSource) -> int:
        return 2**63

    def close(self) -> None:
        for reader in self._readers.values():
            reader.close()


@dataclass(slots=True)
class Said:
    """What is on an output topic: first digest by id, repeats, and ids with two contents."""

    first: Digests = field(default_factory=dict)
    repeated: int = 0
    torn: set[str] = field(default_factory=set)

    def add(self, name: str, digest: bytes) -> None:
        known = self.first.setdefault(name, digest)
        if known is digest:
            return
        self.repeated += 1
        if known != digest:
            self.torn.add(name)


@dataclass(slots=True)
class Finding:
    """How the topics differ from what they should hold."""

    lost: list[str]
    phantom: list[str]
    duplicate_effects: list[str]
    wrong_rows: list[str]

    @property
    def clean(self) -> bool:
        return not (self.lost or self.phantom or self.duplicate_effects or self.wrong_rows)


class Oracle(threading.Thread):
    """Folds the events topic as it grows, and reads what was published; `judge` compares."""

    def __init__(self, bootstrap: str, topics: Topics, partitions: int) -> None:
        super().__init__(name="oracle", daemon=True)
        self.events = 0
        self.records = 0
        self.notes: Counter[str] = Counter()
        self.expected: Digests = {}
        self.expected_letters: Digests = {}
        self.verdicts = Said()
        self.letters = Said()
        self.failure: BaseException | None = None
        self._halt = threading.Event()
        self._servers = bootstrap
        self._topics = topics
        self._partitions = partitions
        self._folds: dict[int, Partition] = {}
        self._rows: dict[int, dict[bytes, bytes]] = {n: {} for n in range(partitions)}
        self._untaken: Counter[int] = Counter()
        self._sources = Sources(bootstrap, topics)
        self._in = Reader(bootstrap, topics.events, partitions)
        self._out = Reader(bootstrap, topics.verdicts, partitions)
        self._bad = Reader(bootstrap, topics.dead_letters, partitions)

    def run(self) -> None:
        while not self._halt.is_set():
            try:
                self._fold(list(self._in.some()))
                self._hear(self._out.some(), self._bad.some())
            except KafkaError:
                self.notes["oracle_waits"] += 1
                self._halt.wait(0.5)
            except BaseException as error:  # noqa: BLE001  # told by the soak
                self.failure = error
                return

    def end(self) -> None:
        """Stop following."""
        self._halt.set()
        self.join()

    def judge(self) -> Finding:
        """Read the rest, and compare; all writers must have ended."""
        self._fold(list(self._in.rest()))
        self._hear(self._out.rest(), self._bad.rest())
        lost = self.expected.keys() - self.verdicts.first.keys()
        phantom = self.verdicts.first.keys() - self.expected.keys()
        lost |= self.expected_letters.keys() - self.letters.first.keys()
        phantom |= self.letters.first.keys() - self.expected_letters.keys()
        other = self._other(self.verdicts, self.expected)
        other |= self._other(self.letters, self.expected_letters)
        return Finding(sorted(lost), sorted(phantom), sorted(other), self._wrong_rows())

    def close(self) -> None:
        for one in (self._sources, self._in, self._out, self._bad):
            one.close()

    def _fold(self, records: list[Any]) -> None:
        if records:
            self._sources.read()
        for record in records:
            fold = self._folds.get(record.partition) or self._open(record)
            if not fold.apply(record):
                raise AssertionError(f"no source for {record.partition}@{record.offset}")
            self.records += 1
            self._collect(fold)

    def _open(self, record: Any) -> Partition:
        """The fold of a partition; its first record must be the pin of its first owner."""
        pin = next(one for one in decode_record(record.value).events if isinstance(one, Pin))
        number = record.partition
        fold = self._folds[number] = Partition(
            deployment_from_pin(pin),
            number,
            self._partitions,
            self._rows[number],
            self._sources,
            state=state_from_pin(number, pin),
        )
        return fold

    def _collect(self, fold: Partition) -> None:
        number = fold.number
        for scope, verdict in fold.verdicts:
            if verdict.id in self.expected:
                raise AssertionError(f"two decisions have the id {verdict.id}")
            self.expected[verdict.id] = _digest(number, scope.encode(), encode_model(verdict))
        for letter in fold.dead_letters:
            name = _letter_name(letter)
            self.expected_letters[name] = _digest(number, name.encode(), encode_model(letter))
        fold.verdicts.clear()
        fold.dead_letters.clear()
        self.events += fold.counts["applied"]
        self.notes.update(fold.counts)
        fold.counts.clear()
        self._untaken[number] += 1
        if self._untaken[number] >= _TAKE_EVERY:
            self._take(fold)

    def _take(self, fold: Partition) -> None:
        self._untaken[fold.number] = 0
        rows = self._rows[fold.number]
        rows.update((k, v) for k, v in fold.take_rows() if not k.startswith(MARKER_PREFIX))
        fold.shrink(_LIVE)

    def _hear(self, verdicts: Iterable[Any], letters: Iterable[Any]) -> None:
        for record in verdicts:
            verdict: Verdict = decode_verdict(record.value)
            digest = _digest(record.partition, record.key, record.value)
            self.verdicts.add(verdict.id, digest)
        for record in letters:
            name = _letter_name(decode_dead_letter(record.value))
            self.letters.add(name, _digest(record.partition, record.key, record.value))

    @staticmethod
    def _other(said: Said, expected: Digests) -> set[str]:
        return said.torn | {
            name
            for name, digest in said.first.items()
            if name in expected and expected[name] != digest
        }

    def _wrong_rows(self) -> list[str]:
        """Rows that the next owner would recover, against the oracle's."""
        wrong: list[str] = []
        for number, found in self._recovered().items():
            fold = self._folds[number]
            self._take(fold)
            wanted = self._rows[number]
            for key in wanted.keys() | found.keys():
                mine, theirs = wanted.get(key), found.get(key)
                # A dead row may have been erased, or not yet.
                erased = theirs is None and mine is not None and fold.expired(mine)
                if mine != theirs and not erased:
                    wrong.append(f"{number}/{key!r}: {_at(theirs)}, should be {_at(mine)}")
        return wrong

    def _recovered(self) -> dict[int, dict[bytes, bytes]]:
        reader = Reader(self._servers, self._topics.changelog, self._partitions)
        stores = {number: MemoryRows() for number in range(self._partitions)}
        merges = {number: Merge(rows, row_position) for number, rows in stores.items()}
        for record in reader.rest():
            merges[record.partition].apply([record])
        reader.close()
        return {
            number: {
                key: row
                for key in store
                if not key.startswith(MARKER_PREFIX) and (row := store.get(key)) is not None
            }
            for number, store in stores.items()
        }


def examples(names: list[str]) -> str:
    """A few of them, for the report."""
    return ", ".join(names[:_EXAMPLES])


def _letter_name(letter: DeadLetter) -> str:
    return f"{letter.topic}-{letter.partition}@{letter.offset}#{letter.index}"


def _digest(partition: int, key: bytes, value: bytes) -> bytes:
    return hashlib.sha256(b"%d %d %b%b" % (partition, len(key), key, value)).digest()[:16]


def _at(row: bytes | None) -> str:
    if row is None:
        return "none"
    return f"offset {row_position(row)[1]} ({len(row)} B, {hashlib.sha256(row).hexdigest()[:8]})"
