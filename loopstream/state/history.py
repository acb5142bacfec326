"""A run's history of calls with the counts that the detectors ask for, kept incrementally.

Entering, settling and evicting a record cost the same with a history of 30 and of 3,000
(SEMANTICS sections 6 and 7). The history has no size of its own: whoever owns it evicts.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from loopstream.state.record import Call, Record
from loopstream.state.spans import Spans

# No streak is hot until settings say from which length on.
_NEVER_HOT = 1 << 62


class Settlement(NamedTuple):
    """What an outcome writes into a record: a result, unless it is a veto."""

    result: str | None
    unknown_tool: str | None = None
    vetoed: bool = False
    no_progress: bool = False
    failure: str | None = None


class History:
    """Records of one run scope in order of entry.

    The *tail* is the longest stretch of newest records in which two signatures strictly
    alternate; it has ``tail_unsettled`` records without a result, and ``tail_mismatches`` pairs
    (one, next but one) whose results differ. ``hot`` holds the calls whose no-progress streak
    has reached ``hot_at``: the candidates for a block. ``pending`` holds the records that nothing
    came back of yet, by signature and in order of entry.
    """

    __slots__ = (
        "_hot_at",
        "_next",
        "_tail_start",
        "_unknown",
        "calls",
        "hot",
        "pending",
        "records",
        "tail_mismatches",
        "tail_unsettled",
    )

    def __init__(self) -> None:
        self.records: deque[Record] = deque()
        self.calls: dict[str, Call] = {}
        self.hot: dict[str, Call] = {}
        self.pending: dict[str, list[Record]] = {}
        self.tail_unsettled = 0
        self.tail_mismatches = 0
        self._hot_at = _NEVER_HOT
        self._next = 0
        self._tail_start = 0
        self._unknown = Spans()

    @classmethod
    def of(cls, records: list[Record]) -> History:
        """The history that its records alone tell: they settled in order of entry, from 0 on."""
        history = cls()
        history.records.extend(records)
        history._next = len(records)
        calls, previous = history.calls, None
        for record in records:
            call = record.call
            if call.records == 0:
                calls[call.signature] = call
            call.records += 1
            if record.result is not None:
                history._count_result(record, record.result)
            elif not record.vetoed:
                history._wait(record)
            if record.unknown_tool is not None:
                joins = previous is not None and _same_unknown(previous, record)
                history._unknown.add(record.seq, joins_left=joins, joins_right=False)
            previous = record
        history._find_tail(records)
        return history

    def __len__(self) -> int:
        return len(self.records)

    # -- what is asked ---------------------------------------------------------------------

    @property
    def tail(self) -> int:
        """Number of newest records that strictly alternate between two signatures."""
        return self._next - self._tail_start

    @property
    def tail_settled_alike(self) -> bool:
        """Whether the tail is settled and each of its two signatures has one single result."""
        return self.tail_unsettled == 0 and self.tail_mismatches == 0

    def other(self) -> Call | None:
        """The signature that would continue the alternation; None when nothing alternates."""
        return self.records[-2].call if self.tail >= 2 else None

    def unknown_streak(self) -> int:
        """Number of newest records in a row that name the same missing tool."""
        return self._unknown.length_at_end(self._next - 1)

    # -- what happens ----------------------------------------------------------------------

    def enter(
        self, tool: str, signature: str, poll: bool, *, call_id: str | None = None, offset: int = 0
    ) -> Record:
        """Append a pending record; returns it."""
        record = self._append(tool, signature, poll, call_id, offset)
        self._wait(record)
        return record

    def settle(
        self,
        tool: str,
        signature: str,
        poll: bool,
        outcome: Settlement,
        *,
        call_id: str | None,
        offset: int = 0,
    ) -> Record:
        """Settle the newest pending match, or append a settled record where there is none."""
        record = self._take_pending(signature, call_id)
        if record is None:
            record = self._append(tool, signature, poll, None, offset)
        self._write(record, outcome)
        return record

    def evict_oldest(self) -> None:
        """Forget the oldest record."""
        record = self.records.popleft()
        call = record.call
        if record.seq == self._tail_start:
            self._shorten_tail(record)
        if record.unknown_tool is not None:
            self._unknown.drop_first(record.seq)
        if record.pending:
            self._forget_pending(call.signature, 0)
        call.records -= 1
        if call.records == 0:
            del self.calls[call.signature]
            self.hot.pop(call.signature, None)
        elif record.result is not None and record.seq > call.broken_at:
            # Every settled record of the call behind `broken_at` is part of the streak.
            call.streak -= 1
            if call.streak == 0:
                call.outcome = None
            if call.streak < self._hot_at:
                self.hot.pop(call.signature, None)

    def watch(self, hot_at: int) -> None:
        """Keep calls whose streak is at least ``hot_at`` in ``hot``; a new bound looks at all."""
        if hot_at != self._hot_at:
            self._hot_at = hot_at
            self.hot = {s: call for s, call in self.calls.items() if call.streak >= hot_at}

    # -- what nothing came back of yet -----------------------------------------------------

    def _wait(self, record: Record) -> None:
        waiting = self.pending.get(record.call.signature)
        if waiting is None:
            self.pending[record.call.signature] = [record]
        else:
            waiting.append(record)

    def _take_pending(self, signature: str, call_id: str | None) -> Record | None:
        """Remove and return the newest pending record, or the newest with this call id."""
        waiting = self.pending.get(signature)
        if waiting is None:
            return None
        # Equal calls in flight at once: the walk is as long as there are newer ones in flight.
        for at in range(len(waiting) - 1, -1, -1):
            if not call_id or waiting[at].call_id == call_id:
                return self._forget_pending(signature, at)
        return None

    def _forget_pending(self, signature: str, at: int) -> Record:
        waiting = self.pending[signature]
        record = waiting.pop(at)
        if not waiting:
            del self.pending[signature]
        return record

    # -- how it is counted -----------------------------------------------------------------

    def _write(self, record: Record, outcome: Settlement) -> None:
        record.vetoed = outcome.vetoed
        record.no_progress = outcome.no_progress
        record.failure = outcome.failure
        if outcome.result is not None:
            record.result = outcome.result
            self._count_result(record, outcome.result)
            if record.seq >= self._tail_start:
                self._settle_tail(record)
        if outcome.unknown_tool is not None:
            record.unknown_tool = outcome.unknown_tool
            self._join_unknown(record)

    def _append(
        self, tool: str, signature: str, poll: bool, call_id: str | None, offset: int
    ) -> Record:
        call = self.calls.get(signature)
        if call is None:
            call = self.calls[signature] = Call(tool, signature, poll)
        call.records += 1
        record = Record(self._next, call, call_id, offset)
        self._extend_tail(call)
        self.records.append(record)
        self._next += 1
        return record

    def _at(self, seq: int) -> Record | None:
        at = seq - self._next
        return self.records[at] if -len(self.records) <= at < 0 else None

    def _extend_tail(self, call: Call) -> None:
        """Move the tail's start for a record of ``call`` that is about to be appended."""
        records, new = self.records, self._next
        last = records[-1] if records else None
        if last is None or last.call is call:
            self._tail_start, self.tail_unsettled, self.tail_mismatches = new, 1, 0
        elif self._tail_start < last.seq and records[-2].call is call:
            self.tail_unsettled += 1
        else:
            self._tail_start, self.tail_mismatches = last.seq, 0
            self.tail_unsettled = 1 + (last.result is None)

    def _find_tail(self, records: list[Record]) -> None:
        """Count the tail of records that were put in at once."""
        start = max(len(records) - 1, 0)
        if start > 0 and records[start - 1].call is not records[start].call:
            start -= 1
            while start > 0 and records[start - 1].call is records[start + 1].call:
                start -= 1
        self._tail_start = start
        for at in range(start, len(records)):
            self.tail_unsettled += records[at].result is None
            if at >= start + 2 and _differ(records[at - 2], records[at]):
                self.tail_mismatches += 1

    def _settle_tail(self, record: Record) -> None:
        self.tail_unsettled -= 1
        if record.seq - 2 >= self._tail_start and _differ(self._at(record.seq - 2), record):
            self.tail_mismatches += 1
        if _differ(record, self._at(record.seq + 2)):
            self.tail_mismatches += 1

    def _shorten_tail(self, oldest: Record) -> None:
        """The tail's first record leaves; it is no longer in ``records``."""
        self._tail_start += 1
        if oldest.result is None:
            self.tail_unsettled -= 1
        if _differ(oldest, self._at(oldest.seq + 2)):
            self.tail_mismatches -= 1

    def _count_result(self, record: Record, result: str) -> None:
        call, seq = record.call, record.seq
        if seq < call.broken_at:
            return  # older than a different outcome already
        if call.outcome == result:
            call.streak += 1
            call.newest_settled = max(seq, call.newest_settled)
        elif seq > call.newest_settled or call.streak == 0:
            if call.streak:
                call.broken_at = call.newest_settled
            call.outcome, call.streak, call.newest_settled = result, 1, seq
        else:
            # It settled late and differs: only what was entered after it still counts.
            call.broken_at = seq
            call.streak = self._settled_after(call, seq)
        if call.streak >= self._hot_at:
            self.hot[call.signature] = call
        elif self.hot:
            self.hot.pop(call.signature, None)

    def _settled_after(self, call: Call, seq: int) -> int:
        """Settled records of ``call`` newer than ``seq``: as many steps as the outcome was late."""
        count = 0
        for record in reversed(self.records):
            if record.seq == seq:
                break
            count += record.call is call and record.result is not None
        return count

    def _join_unknown(self, record: Record) -> None:
        left, right = self._at(record.seq - 1), self._at(record.seq + 1)
        self._unknown.add(
            record.seq,
            joins_left=left is not None and _same_unknown(left, record),
            joins_right=right is not None and _same_unknown(right, record),
        )


def _differ(one: Record | None, other: Record | None) -> bool:
    """Whether both have a result and the results are different."""
    return (
        one is not None
        and other is not None
        and one.result is not None
        and other.result is not None
        and one.result != other.result
    )


def _same_unknown(one: Record, other: Record) -> bool:
    return one.unknown_tool == other.unknown_tool and one.call.tool == other.call.tool
