"""A run's extended counts as one section of its row, and back: equal books give equal sections.

Unlike the documented history's, the counters are written down: they follow from more than the
records that are left. Every digest, name and 8-byte hash is kept once; times are relative.
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import Any, Final

from loopstream.state.extended.book import Book
from loopstream.state.extended.tallies import (
    NEVER,
    Alarm,
    Call,
    Kind,
    Recipient,
    Record,
    Server,
    Tool,
)
from loopstream.state.interning import Digests, Names, fold, name_at, unfold

_EFFECTS: Final = (None, "read", "change", "send", "wait")
_POLL, _ACK, _FAILED = 1, 2, 4
# Evidence looks at this many newest records only.
_OFFSETS: Final = 64
_PLAIN: Final = (
    "next",
    "time",
    "clock",
    "changed",
    "loose",
    "moved",
    "news",
    "unknown",
    "vetoes",
    "veto_news",
    "denials",
    "hop_news",
    "compacted",
    "since_compaction",
    "idle_compactions",
    "useless_compactions",
    "chant",
    "chant_news",
    "warned",
)
_ALARM: Final = ("level", "shadow", "heard", "count", "threshold", "mark", "news")
_TOOL: Final = ("same", "moves", "near", "mark", "batch", "fails", "fail_mark", "fail_batch")


class _Hashes:
    """Eight-byte hashes, each once; 0 stands for none."""

    def __init__(self, blob: bytes = b"") -> None:
        self._known = [int.from_bytes(blob[at : at + 8], "big") for at in range(0, len(blob), 8)]
        self._places = {value: at for at, value in enumerate(self._known, 1)}

    def add(self, value: int | None) -> int | None:
        if not value:
            return value
        place = self._places.get(value)
        if place is None:
            self._known.append(value)
            place = self._places[value] = len(self._known)
        return place

    def get(self, place: int | None) -> int | None:
        return self._known[place - 1] if place else place

    def at(self, place: int) -> int:
        return self._known[place - 1] if place else 0

    def blob(self) -> bytes:
        return b"".join(value.to_bytes(8, "big") for value in self._known)


def pack_book(book: Book, digests: Digests, names: Names) -> list[Any]:
    """The section of a row."""
    return _Packer(book, digests, names).section()


def unpack_book(section: list[Any], digests: list[str], names: list[str]) -> Book:
    """The book that `pack_book` made the section of."""
    return _Unpacker(digests, names).book(section)


class _Packer:
    def __init__(self, book: Book, digests: Digests, names: Names) -> None:
        self.book = book
        self.digests = digests
        self.names = names
        self.hashes = _Hashes()
        self.places = {signature: at for at, signature in enumerate(book.calls)}

    def section(self) -> list[Any]:
        book, hashes, names = self.book, self.hashes, self.names
        body = [
            [getattr(book, name) for name in _PLAIN],
            [self.tool(tool) for tool in book.tools.values()],
            [self.call(call) for call in book.calls.values()],
            self.records(),
            self.steps(),
            [[hashes.add(key), mark] for key, mark in book.resources.items()],
            [self.server(key, server) for key, server in book.servers.items()],
            [self.recipient(key, to) for key, to in book.recipients.items()],
            [
                [names.add(name) for name in named]
                for named in (book.unknown_tools, book.veto_tools, book.hops)
            ],
            self.signature(book.chant_signature),
            [list(slot) for slot in book.spent],
            [self.alarm(alarm) for alarm in book.alarms.values()],
        ]
        return [hashes.blob(), *body]

    def tool(self, tool: Tool) -> list[Any]:
        add = self.hashes.add
        return [
            self.names.add(tool.name),
            [getattr(tool, name) for name in _TOOL],
            add(tool.out),
            add(tool.last),
            add(tool.subject),
            tool.leaves,
            tool.words,
            [add(tool.fail_class), tool.fail_kind, self.book.time - tool.fail_time]
            if tool.fail_class
            else None,
        ]

    def call(self, call: Call) -> list[Any]:
        add, book = self.hashes.add, self.book
        flags = call.poll * _POLL + call.ack * _ACK + call.failed * _FAILED
        return [
            self.names.add(call.tool.name),
            self.digests.add(call.signature[-64:]),
            flags + 8 * _EFFECTS.index(call.effect),
            [add(call.resource), add(call.subject), add(call.server)],
            add(call.out),
            call.count,
            call.streak > 0,
            book.next - call.since,
            call.last - call.since,
            call.mark,
            call.batch,
            book.time - call.time,
            call.time - call.time_first,
        ]

    def records(self) -> list[Any]:
        """Each record is a number of a (call, kind, outcome); what few records have is sparse."""
        table: dict[tuple[int, int, int], int] = {}
        column, rest = [], []
        counted = bytearray((len(self.book.records) + 7) // 8)
        for at, record in enumerate(self.book.records):
            out = self.hashes.add(record.out) or 0
            entry = (self.places[record.call.signature], int(record.kind), out)
            column.append(table.setdefault(entry, len(table)))
            if record.counted == record.call.streak and record.counted != NEVER:
                counted[at // 8] |= 1 << at % 8
            if record.kind is Kind.PENDING:
                rest.append([at, record.call_id, record.batch, record.leaves, record.words])
        offsets = [record.offset for record in self.book.records][-_OFFSETS:]
        deltas = [later - earlier for earlier, later in pairwise([0, *offsets])]
        return [[list(entry) for entry in table], column, bytes(counted), deltas, rest]

    def steps(self) -> list[Any]:
        steps = self.book.steps
        return [
            [self.hashes.add(token) for token in steps.tokens],
            [[self.signature(s) for s in members] for members in steps.members],
            [self.book.time - time for time in steps.times],
            [list(run) for run in steps.runs.items()],
            steps.batch,
            self.hashes.add(steps.batch_token),
            [self.signature(s) for s in steps.batch_members],
        ]

    def signature(self, signature: str) -> int | list[Any]:
        """A signature of the history is its call's number."""
        place = self.places.get(signature)
        return fold(signature, self.digests) if place is None else place

    def server(self, key: int, server: Server) -> list[Any]:
        return [
            self.hashes.add(key),
            self.hashes.add(server.fail_class),
            server.kind,
            server.fails,
            self.book.time - server.time,
            server.batch,
            [self.names.add(name) for name in server.tools],
        ]

    def recipient(self, key: int, to: Recipient) -> list[Any]:
        return [
            self.hashes.add(key),
            self.names.add(to.tool),
            [to.count, to.near, to.bare, to.news],
            to.sketch,
            self.book.time - to.time,
            to.time - to.time_first,
        ]

    def alarm(self, alarm: Alarm) -> list[Any]:
        targets = [
            [
                None if signature is None else self.signature(signature),
                self.names.add(tool),
                [self.signature(spared) for spared in exclude],
            ]
            for signature, tool, exclude in alarm.targets
        ]
        return [
            alarm.detector,
            alarm.about,
            self.signature(alarm.thing),
            alarm.variant,
            [getattr(alarm, name) for name in _ALARM],
            self.names.add(alarm.tool),
            self.names.add(alarm.paired),
            fold(alarm.subject, self.digests),
            targets,
        ]


class _Unpacker:
    def __init__(self, digests: list[str], names: list[str]) -> None:
        self.digests = digests
        self.names = names
        self.hashes = _Hashes()
        self.calls: list[Call] = []
        self.time = 0

    def book(self, section: list[Any]) -> Book:
        book = Book()
        blob, plain, tools, calls, records, steps, resources, servers, recipients = section[:9]
        named, chant, spent, alarms = section[9:]
        self.hashes = _Hashes(blob)
        for name, value in zip(_PLAIN, plain, strict=True):
            setattr(book, name, value)
        self.time = book.time
        book.tools = {tool.name: tool for tool in map(self.tool, tools)}
        self.calls = [self.call(book, fields) for fields in calls]
        book.calls = {call.signature: call for call in self.calls}
        self.records(book, records)
        self.steps(book, steps)
        book.resources = {self.hashes.at(key): mark for key, mark in resources}
        book.servers = dict(map(self.server, servers))
        book.recipients = dict(map(self.recipient, recipients))
        book.unknown_tools, book.veto_tools, book.hops = (
            [self.names[place] for place in places] for places in named
        )
        book.chant_signature = self.signature(chant)
        book.spent = deque(spent)
        book.alarms = {
            (alarm.detector, alarm.about, alarm.thing): alarm for alarm in map(self.alarm, alarms)
        }
        return book

    def tool(self, fields: list[Any]) -> Tool:
        name, counts, out, last, subject, leaves, words, failed = fields
        tool = Tool.named(self.names[name])
        for field, value in zip(_TOOL, counts, strict=True):
            setattr(tool, field, value)
        at = self.hashes.at
        tool.out, tool.last, tool.subject = at(out), at(last), self.hashes.get(subject)
        tool.leaves, tool.words = leaves, words
        if failed is not None:
            tool.fail_class, tool.fail_kind = at(failed[0]), failed[1]
            tool.fail_time = self.time - failed[2]
        return tool

    def call(self, book: Book, fields: list[Any]) -> Call:
        name, digest, flags, things, out, count, tried, since, span, mark, batch, age, lasted = (
            fields
        )
        tool = book.tools[self.names[name]]
        tool.calls += 1
        call = Call.signed(tool, f"{tool.name}:{self.digests[digest]}")
        call.poll, call.ack, call.failed = (bool(flags & f) for f in (_POLL, _ACK, _FAILED))
        call.effect = _EFFECTS[flags // 8]
        call.resource, call.subject, call.server = map(self.hashes.get, things)
        call.out, call.count, call.streak = self.hashes.at(out), count, int(tried)
        call.since, call.mark, call.batch = book.next - since, mark, batch
        call.last = call.since + span
        call.time = self.time - age
        call.time_first = call.time - lasted
        return call

    def records(self, book: Book, fields: list[Any]) -> None:
        table, column, counted, deltas, rest = fields
        entries = [(self.calls[c], Kind(kind), self.hashes.at(out)) for c, kind, out in table]
        first, unknown, offset = book.next - len(column), len(column) - len(deltas), 0
        for at, number in enumerate(column):
            call, kind, out = entries[number]
            if at >= unknown:
                offset += deltas[at - unknown]
            record = Record(first + at, call, None, offset)
            record.kind, record.out = kind, out
            if counted[at // 8] >> at % 8 & 1:
                record.counted = call.streak
            book.keep(record)
        for at, call_id, batch, leaves, words in rest:
            record = book.records[at]
            record.call_id, record.batch = call_id, batch
            record.leaves, record.words = leaves, words
            record.call.pending.append(record)

    def steps(self, book: Book, fields: list[Any]) -> None:
        tokens, members, ages, runs, batch, batch_token, batch_members = fields
        steps = book.steps
        steps.tokens.extend(self.hashes.at(token) for token in tokens)
        steps.members.extend(tuple(map(self.signature, step)) for step in members)
        steps.times.extend(self.time - age for age in ages)
        steps.runs = dict(runs)
        steps.batch, steps.batch_token = batch, self.hashes.at(batch_token)
        steps.batch_members = [self.signature(s) for s in batch_members]

    def signature(self, packed: int | list[Any]) -> str:
        return (
            self.calls[packed].signature
            if isinstance(packed, int)
            else unfold(packed, self.digests)
        )

    def server(self, fields: list[Any]) -> tuple[int, Server]:
        key, fail_class, kind, fails, age, batch, tools = fields
        server = Server(self.hashes.at(fail_class), kind)
        server.fails, server.time, server.batch = fails, self.time - age, batch
        server.tools = [self.names[name] for name in tools]
        return self.hashes.at(key), server

    def recipient(self, fields: list[Any]) -> tuple[int, Recipient]:
        key, name, counts, sketch, age, lasted = fields
        to = Recipient(self.names[name])
        to.count, to.near, to.bare, to.news = counts
        to.sketch, to.time = sketch, self.time - age
        to.time_first = to.time - lasted
        return self.hashes.at(key), to

    def alarm(self, fields: list[Any]) -> Alarm:
        detector, about, thing, variant, counts, tool, paired, subject, targets = fields
        alarm = Alarm(detector, about, self.signature(thing), variant)
        for name, value in zip(_ALARM, counts, strict=True):
            setattr(alarm, name, value)
        alarm.tool, alarm.paired = self.names[tool], name_at(self.names, paired)
        alarm.subject = unfold(subject, self.digests)
        alarm.targets = tuple(
            (
                None if signature is None else self.signature(signature),
                name_at(self.names, tool),
                tuple(self.signature(spared) for spared in exclude),
            )
            for signature, tool, exclude in targets
        )
        return alarm
