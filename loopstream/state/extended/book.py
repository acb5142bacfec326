"""All that is counted of a run under profile ``extended``, kept incrementally.

Entering, settling and evicting cost the same whatever the history holds. Counts are of steps
without progress: a call that comes to something new starts anew, and so does one that depends on
a resource which was changed in between.
"""

from __future__ import annotations

import zlib
from collections import deque
from typing import Any, Final

from loopstream.events.tool import ExtendedCall, ExtendedOutcome
from loopstream.state.extended.steps import Steps
from loopstream.state.extended.tallies import (
    NEVER,
    WORD,
    Alarm,
    Call,
    Kind,
    Recipient,
    Record,
    Server,
    Tool,
    alike,
)

MESSAGE_TOOL: Final = "__message__"
NO_BATCH: Final = 0
MAX_RESOURCES: Final = 64
MAX_SERVERS: Final = 16
MAX_RECIPIENTS: Final = 32
MAX_NAMES: Final = 32
# So much news lets bygones be bygones: vetoes and blocks before it no longer count.
FORGIVING_NEWS: Final = 10
_ODD: Final = 0x9E3779B97F4A7C15
_SAID: Final = 1
_LEAVES_ALIKE: Final = 0.5
_WORDS_ALIKE: Final = 0.6
_SENDS_ALIKE: Final = 0.6
# A compaction that frees less than a twentieth.
_GAIN: Final = 20
_QUICK_COMPACTION: Final = 2
# Failures that are the same whatever was changed in between.
_OUTSIDE: Final = frozenset({"denied", "rate_limit", "auth", "permission", "connection", "timeout"})


def batch_of(batch: str | None) -> int:
    """A batch id as it is kept: `NO_BATCH` for none."""
    return NO_BATCH if batch is None else zlib.crc32(batch.encode("utf-8", "surrogatepass")) + 1


class Book:
    """The counts of one run.

    Attributes:
        records: history in order of entry; ``pairs`` counts its (call, outcome) pairs.
        clock: rises with each change. ``changed`` is its value at the last successful change of
            anything, ``loose`` of something that can't be told, ``moved`` when a call last came to
            something else than before, ``resources`` of each thing.
        news: how often something was learned: a new outcome that is not just the tool's last one.
        vetoes: calls refused as part of a loop and tried all the same, until there is enough news.
        hops: tools that a block was issued for one after the other, likewise.
    """

    __slots__ = (
        "alarms",
        "calls",
        "changed",
        "chant",
        "chant_news",
        "chant_signature",
        "clock",
        "compacted",
        "denials",
        "hop_news",
        "hops",
        "idle_compactions",
        "loose",
        "moved",
        "news",
        "next",
        "pairs",
        "recipients",
        "records",
        "resources",
        "servers",
        "since_compaction",
        "spent",
        "steps",
        "time",
        "tools",
        "unknown",
        "unknown_tools",
        "useless_compactions",
        "veto_news",
        "veto_tools",
        "vetoes",
        "warned",
    )

    def __init__(self) -> None:
        self.records: deque[Record] = deque()
        self.calls: dict[str, Call] = {}
        self.tools: dict[str, Tool] = {}
        self.servers: dict[int, Server] = {}
        self.recipients: dict[int, Recipient] = {}
        self.pairs: dict[int, int] = {}
        self.steps = Steps()
        self.next = 0
        self.time = 0
        self.clock = self.changed = self.loose = self.moved = 0
        self.resources: dict[int, int] = {}
        self.news = 0
        self.unknown = 0
        self.unknown_tools: list[str] = []
        self.vetoes = 0
        self.veto_news = 0
        self.veto_tools: list[str] = []
        self.denials = 0
        self.hops: list[str] = []
        self.hop_news = 0
        self.compacted = 0
        self.since_compaction = 0
        self.idle_compactions = 0
        self.useless_compactions = 0
        self.chant = 0
        self.chant_signature = ""
        self.chant_news = 0
        self.spent: deque[list[int]] = deque()
        self.warned = 0
        self.alarms: dict[tuple[str, int, str], Alarm] = {}

    # -- calls -----------------------------------------------------------------------------

    def enter(
        self,
        tool: str,
        signature: str,
        seen: ExtendedCall,
        *,
        call_id: str | None,
        batch: int,
        offset: int,
    ) -> Record:
        """Append a pending record; a text-only turn is settled by being said."""
        if self.steps.batch != batch:
            self.steps.close(batch, self.time)
        record = self._append(tool, signature, call_id, offset)
        call = record.call
        if call.records == 1:
            _describe(call, seen)
        record.batch = batch
        self.since_compaction += 1
        if tool == MESSAGE_TOOL:
            self._say(record)
            return record
        record.leaves, record.words = seen.leaves, seen.words
        call.pending.append(record)
        return record

    def evict(self, size: int) -> None:
        """Forget the oldest records over ``size``."""
        while len(self.records) > size:
            self._evict_oldest()

    def refused(self, tool: str) -> None:
        """A call was proposed that is refused as part of a loop."""
        if self.news - self.veto_news >= FORGIVING_NEWS:
            self.vetoes = 0
            self.veto_tools.clear()
        self.vetoes += 1
        self.veto_news = self.news
        if tool not in self.veto_tools and len(self.veto_tools) < MAX_NAMES:
            self.veto_tools.append(tool)

    def hopped(self, tool: str) -> None:
        """A block was issued where none stood."""
        if self.news - self.hop_news >= FORGIVING_NEWS:
            self.hops.clear()
        self.hop_news = self.news
        if tool not in self.hops and len(self.hops) < MAX_NAMES:
            self.hops.append(tool)

    def calm(self, record: Record) -> bool:
        """Whether none of our detectors can have anything to say after an outcome."""
        call = record.call
        tool = call.tool
        return not (
            call.count > 1
            or tool.same > 1
            or tool.fails > 1
            or self.alarms
            or self.steps.runs
            or call.effect == "send"
            or (call.server in self.servers if self.servers else False)
            or self.unknown
            or self.vetoes
            or self.hops
            or self.spent
            or self.chant > 1
            or self.idle_compactions
            or self.useless_compactions
        )

    def forgive(self) -> None:
        """An operator lets the run go on: it is counted anew, what is known stays known."""
        self.steps = Steps()
        self.servers.clear()
        self.recipients.clear()
        self.chant = 0
        for call in self.calls.values():
            call.count = 0
        for tool in self.tools.values():
            tool.same = tool.near = tool.fails = 0
        self.vetoes = self.idle_compactions = self.useless_compactions = self.unknown = 0
        for names in (self.veto_tools, self.hops, self.unknown_tools):
            names.clear()

    # -- outcomes --------------------------------------------------------------------------

    def settle(
        self,
        tool: str,
        signature: str,
        seen: ExtendedOutcome,
        *,
        call_id: str | None,
        offset: int,
        executed: bool,
    ) -> Record | None:
        """Settle the newest pending match; without one append a settled record.

        Returns:
            None where nothing is recorded: no outcome came, or a refused call's refusal.
        """
        vetoed = seen.refused == "veto" or not executed
        if (seen.result is None and not vetoed) or tool == MESSAGE_TOOL:
            return None
        call = self.calls.get(signature)
        record = call.take_pending(call_id) if call is not None else None
        if vetoed:
            return None if record is None else self._veto(record)
        if record is None:
            record = self._append(tool, signature, None, offset)
        out = int.from_bytes(seen.result or b"", "big")
        record.out = out
        if seen.failure is None:
            record.kind = Kind.OK
        else:
            record.kind = Kind.DENIED if seen.refused == "denied" else Kind.FAILED
            self.denials += record.kind is Kind.DENIED
        self._learn(record, seen)
        record.leaves = record.words = b""
        return record

    def compact(self, before: int | None, after: int | None) -> None:
        """The context was compacted."""
        quick = self.since_compaction <= _QUICK_COMPACTION
        self.idle_compactions = self.idle_compactions + 1 if quick and self.compacted else 0
        if before is not None and after is not None:
            useless = (before - after) * _GAIN < before
            self.useless_compactions = self.useless_compactions + 1 if useless else 0
        self.compacted += 1
        self.since_compaction = 0

    def spend(
        self, time: int, slot_ms: int, slots: int, amounts: tuple[int, int, int, int]
    ) -> None:
        """Book calls, distinct calls, tokens and cost into the window's slot of a time."""
        slot, spent = time // slot_ms, self.spent
        while spent and spent[0][0] <= slot - slots:
            spent.popleft()
        if not spent or spent[-1][0] < slot:
            spent.append([slot, 0, 0, 0, 0])
        for at, amount in enumerate(amounts, 1):
            spent[-1][at] += amount

    def keep(self, record: Record) -> None:
        """Append a record as it was packed."""
        self.records.append(record)
        record.call.records += 1
        if record.out:
            pair = _pair(record.call.key, record.out)
            self.pairs[pair] = self.pairs.get(pair, 0) + 1

    # -- how it is counted -----------------------------------------------------------------

    def depends_on(self, call: Call) -> int:
        """The clock's value at the last progress that a call depends on.

        What acts, waits or polls shows its effect elsewhere: there any change is progress.
        """
        effect, resource = call.effect, call.resource
        if resource is not None and effect == "read":
            mark = self.resources.get(resource, 0)
            mark = max(mark, self.loose)
        else:
            mark = self.changed
        acts = call.poll or (call.ack if effect is None else effect != "read")
        return max(mark, self.moved) if acts and not call.failed else mark

    def _append(self, tool: str, signature: str, call_id: str | None, offset: int) -> Record:
        call = self.calls.get(signature)
        if call is None:
            call = self.calls[signature] = Call.signed(self._tool(tool), signature)
            call.tool.calls += 1
        call.records += 1
        record = Record(self.next, call, call_id, offset)
        self.records.append(record)
        self.next += 1
        return record

    def _tool(self, name: str) -> Tool:
        tool = self.tools.get(name)
        if tool is None:
            tool = self.tools[name] = Tool.named(name)
        return tool

    def _evict_oldest(self) -> None:
        record = self.records.popleft()
        call = record.call
        call.records -= 1
        if record.out:
            pair = _pair(call.key, record.out)
            left = self.pairs.get(pair, 0) - 1
            if left > 0:
                self.pairs[pair] = left
            else:
                self.pairs.pop(pair, None)
        if record.counted == call.streak and record.counted != NEVER:
            call.count = max(call.count - 1, 0)
        if record.kind is Kind.PENDING:
            call.pending.pop(0)
        if call.records == 0:
            del self.calls[call.signature]
            call.tool.calls -= 1
            if call.tool.calls == 0:
                del self.tools[call.tool.name]

    def _say(self, record: Record) -> None:
        call = record.call
        record.kind, record.out = Kind.OK, _SAID
        if call.signature == self.chant_signature and self.news == self.chant_news:
            self.chant += 1
        else:
            self.chant = 1
            self.chant_signature = call.signature
        self.chant_news = self.news
        pair = _pair(call.key, _SAID)
        self.pairs[pair] = self.pairs.get(pair, 0) + 1
        self.steps.add(pair, call.signature, record.batch, self.time)

    def _veto(self, record: Record) -> Record:
        record.kind = Kind.VETOED
        record.leaves = record.words = b""
        self.refused(record.call.tool.name)
        return record

    def _learn(self, record: Record, seen: ExtendedOutcome) -> None:
        call, out = record.call, record.out
        tool = call.tool
        pair = _pair(call.key, out)
        known = self.pairs.get(pair, 0)
        self.pairs[pair] = known + 1
        before, tried = call.out, call.streak > 0
        call.ack, call.failed = seen.ack, record.kind is not Kind.OK
        self._count_call(record)
        if record.kind is Kind.OK:
            self._count_result(record, fresh=not known and not tried)
            if call.effect == "send":
                self._count_send(record)
        else:
            self._count_failure(record, seen)
        if not known:
            if call.effect == "change" and record.kind is Kind.OK and not seen.unchanged:
                self._change(call.resource)
            if tried and before != out:
                self.clock += 1
                self.moved = self.clock
            if tool.same <= 1 and tool.fails <= 1 and call.effect != "send":
                self.news += 1
        tool.mark = self.clock
        self.steps.add(pair, call.signature, record.batch, self.time)

    def _change(self, resource: int | None) -> None:
        self.clock += 1
        self.changed = self.clock
        if resource is None:
            self.loose = self.clock
            return
        _bound(self.resources, resource, MAX_RESOURCES)
        self.resources[resource] = self.clock

    def _count_call(self, record: Record) -> None:
        call = record.call
        if call.count and call.out == record.out and call.mark >= self.depends_on(call):
            if not record.batch or record.batch != call.batch:
                call.count += 1
                record.counted = call.streak
        else:
            call.streak += 1
            record.counted = call.streak
            call.out, call.count = record.out, 1
            call.since, call.time_first = record.seq, self.time
        call.mark, call.batch, call.time = self.clock, record.batch, self.time
        call.last = record.seq

    def _count_result(self, record: Record, *, fresh: bool) -> None:
        call = record.call
        tool = call.tool
        tool.fails = 0
        if call.server is not None:
            self.servers.pop(call.server, None)
        if self.unknown:
            self.unknown = 0
            self.unknown_tools.clear()
        progress = self.changed if call.effect == "read" else max(self.changed, self.moved)
        if tool.out != record.out or not tool.same or tool.mark < progress:
            tool.out, tool.same, tool.moves, tool.near = record.out, 1, 0, 0
        elif _tells_nothing(call, tool, fresh=fresh) and (
            not record.batch or record.batch != tool.batch
        ):
            tool.same += 1
            if call.key != tool.last:
                tool.moves += 1
                tool.near = tool.near + 1 if _is_near(record, tool) else 0
        tool.last, tool.batch, tool.subject = call.key, record.batch, call.subject
        tool.leaves, tool.words = record.leaves, record.words

    def _count_failure(self, record: Record, seen: ExtendedOutcome) -> None:
        call, tool = record.call, record.call.tool
        tool.same = tool.moves = tool.near = 0
        found = int.from_bytes(seen.failure_class or b"", "big")
        kind = seen.failure or "other"
        outside = kind in _OUTSIDE
        if tool.fails and tool.fail_class == found and (outside or tool.fail_mark >= self.changed):
            if not record.batch or record.batch != tool.fail_batch:
                tool.fails += 1
        else:
            tool.fails, tool.fail_class, tool.fail_kind = 1, found, kind
        tool.fail_mark, tool.fail_time, tool.fail_batch = self.clock, self.time, record.batch
        server = call.server if seen.server is None else int.from_bytes(seen.server, "big")
        if server is not None and outside:
            self._count_server(server, record, found, kind)
        if seen.unknown_tool is not None:
            self.unknown += 1
            if tool.name not in self.unknown_tools and len(self.unknown_tools) < MAX_NAMES:
                self.unknown_tools.append(tool.name)

    def _count_server(self, key: int, record: Record, found: int, kind: str) -> None:
        server = self.servers.get(key)
        if server is None or server.fail_class != found:
            _bound(self.servers, key, MAX_SERVERS)
            server = self.servers[key] = Server(found, kind)
        if server.fails == 0 or not record.batch or record.batch != server.batch:
            server.fails += 1
        server.batch, server.time = record.batch, self.time
        name = record.call.tool.name
        if name not in server.tools and len(server.tools) < MAX_NAMES:
            server.tools.append(name)

    def _count_send(self, record: Record) -> None:
        call = record.call
        key = recipient_key(call)
        to = self.recipients.get(key)
        if to is None:
            _bound(self.recipients, key, MAX_RECIPIENTS)
            to = self.recipients[key] = Recipient(call.tool.name)
        to.count += 1
        sketch = record.words or record.leaves
        near = alike(sketch, to.sketch) >= _SENDS_ALIKE
        if not near:
            to.near, to.time_first = 0, self.time
        to.near += 1
        to.bare = to.bare + 1 if near and self.news == to.news else 1
        to.news, to.time, to.sketch = self.news, self.time, sketch


def recipient_key(call: Call) -> int:
    """Names one recipient of one tool."""
    return (call.tool.key * _ODD + (call.resource or 0)) & WORD


def _describe(call: Call, seen: ExtendedCall) -> None:
    call.poll, call.effect = seen.poll, seen.effect
    if seen.resource is not None:
        call.resource = call.subject = int.from_bytes(seen.resource, "big")
    if seen.subject is not None:
        call.subject = int.from_bytes(seen.subject, "big")
    if seen.server is not None:
        call.server = int.from_bytes(seen.server, "big")


def _tells_nothing(call: Call, tool: Tool, *, fresh: bool) -> bool:
    """Whether an equal result counts: not for one more thing done or looked at in a sweep."""
    if not fresh:
        return True
    if call.effect in ("change", "send") or (call.effect is None and call.ack):
        return False
    return call.subject is None or tool.subject is None or call.subject == tool.subject


def _is_near(record: Record, tool: Tool) -> bool:
    return (
        alike(record.leaves, tool.leaves) >= _LEAVES_ALIKE
        or alike(record.words, tool.words) >= _WORDS_ALIKE
    )


def _pair(key: int, out: int) -> int:
    return (key * 31 + out) & WORD


def _bound(table: dict[int, Any], key: int, bound: int) -> None:
    """Make room for a key: the one put in first goes; one that is there comes last."""
    if table.pop(key, None) is None and len(table) >= bound:
        del table[next(iter(table))]
