"""Verdicts of two sides compared: same, changed, earlier or later, other action, only here.

Kept in SQLite, so that memory stays constant however many verdicts there are.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from loopstream.events import Verdict
from loopstream.replay.outputs import Head, ReplayOutput
from loopstream.replay.recorded import RecordedVerdict, VerdictTopic
from loopstream.wire.codec import is_json
from loopstream.wire.verdicts import encode_model

SideName = Literal["a", "b"]
CHANGES: Final = (
    "same",
    "changed",
    "details",
    "earlier",
    "later",
    "other_action",
    "only_a",
    "only_b",
)
"""``earlier`` and ``later`` say where B's is; ``changed``: the same decision with another count,
threshold, mode or extent; ``details``: with other words, evidence, times or settings alone."""

_DECIDED: Final = (
    *("action", "level", "count", "threshold", "tool", "paired_tool"),
    *("call_id", "mode", "instead_of"),
)
_SCHEMA: Final = """
create table verdicts(
    side text, id text, n int, scope text, agent text, detector text, action text, tool text,
    key blob, event text, part int, off int, digest blob, core blob,
    change text, other int
);
create index by_id on verdicts(side, id, n);
create table partial(scope text primary key) without rowid;
"""
# Earlier or later: the same thing said of the same run, in order, at another event.
_MOVED: Final = """
with open as (
    select rowid as row, side, scope, detector, key, action, part, off,
        row_number() over (partition by side, scope, detector, key, action order by part, off) as k
    from verdicts where change is null)
select a.row, b.row, case when b.off < a.off then 'earlier' else 'later' end
from open a join open b on a.side = 'a' and b.side = 'b' and a.scope = b.scope
    and a.detector = b.detector and a.key = b.key and a.action = b.action and a.k = b.k
"""
# Other action: something else was said at the same event.
_OTHER: Final = """
with open as (
    select rowid as row, side, scope, event,
        row_number() over (partition by side, scope, event order by rowid) as k
    from verdicts where change is null)
select a.row, b.row, 'other_action'
from open a join open b on a.side = 'a' and b.side = 'b' and a.scope = b.scope
    and a.event = b.event and a.k = b.k
"""
_BY_ID: Final = """
select a.rowid, b.rowid, case when a.digest = b.digest then 'same'
    when a.core = b.core then 'details' else 'changed' end
from verdicts a join verdicts b on a.side = 'a' and b.side = 'b' and a.id = b.id and a.n = b.n
"""
_ROWS: Final = """
select a.change, a.scope, a.agent, a.detector, a.action, a.tool, a.id, a.event, a.part, a.off,
    b.id, b.detector, b.action, b.event, b.off, a.side
from verdicts a left join verdicts b on b.rowid = a.other
where (a.side = 'a' or a.other is null) and a.change <> 'same'
order by a.part, a.off, a.side, a.rowid
"""


@dataclass(slots=True)
class Comparison:
    """How two sides differ.

    Attributes:
        counts: verdicts by change.
        by_detector: likewise for each detector.
        by_agent: likewise for each agent.
        partial_runs: runs left out because their beginning is gone.
        sides: verdicts on each side, partial runs left out, repetitions counted once.
        repeated: records that repeat a verdict byte for byte.
        details_count: whether ``changed`` and ``details`` are differences; it is not where one side
            ran under other settings, for a verdict names them.
    """

    counts: dict[str, int]
    by_detector: dict[str, dict[str, int]]
    by_agent: dict[str, dict[str, int]]
    partial_runs: int
    sides: dict[str, int]
    repeated: int
    details_count: bool = True

    @property
    def differences(self) -> int:
        """What is not the same on both sides."""
        ignored = {"same"} if self.details_count else {"same", "changed", "details"}
        return sum(count for change, count in self.counts.items() if change not in ignored)


class Diff:
    """Two sides being compared.

    Attributes:
        repeated: records met that repeat a verdict byte for byte.
    """

    def __init__(self) -> None:
        self.repeated = 0
        # No name: a database of its own on disk, gone with the connection.
        self._db = sqlite3.connect("", isolation_level=None)
        self._db.execute("pragma synchronous = off")
        self._db.executescript(_SCHEMA)

    def close(self) -> None:
        """Forget everything."""
        self._db.close()

    def load_output(self, side: SideName, output: ReplayOutput, head: Head | None = None) -> None:
        """Take a replay's output as one side; with ``head`` only what that covers.

        Raises:
            DataError: the file is corrupt.
        """
        lines = (line.verdict for line in output.verdicts())
        self._load(
            side,
            ((v, encode_model(v)) for v in lines if head is None or head.covers(v)),
        )
        self._exclude(output.partial)

    def load_recorded(self, side: SideName, topic: VerdictTopic, head: Head) -> None:
        """Take the recorded verdicts that a replay of this head covers as one side.

        Raises:
            DataError: a record is no verdict.
            LoopstreamError: Kafka is unreachable, or the topic is missing.
        """
        numbers = sorted(head.spans) or None
        found = (one for one in topic.read(numbers) if head.covers(one.verdict))
        self._load(side, ((one.verdict, canonical(one)) for one in found))

    def compare(self, *, details_count: bool = True) -> Comparison:
        """Match the two sides; call it once, when both are loaded."""
        db = self._db
        db.execute("delete from verdicts where scope in (select scope from partial)")
        for query in (_BY_ID, _MOVED, _OTHER):
            self._match(query)
        db.execute("update verdicts set change = 'only_' || side where change is null")
        (partial,) = db.execute("select count(*) from partial").fetchone()
        sides = {"a": 0, "b": 0}
        sides |= dict(db.execute("select side, count(*) from verdicts group by side"))
        return Comparison(
            self._counts(),
            self._grouped("detector"),
            self._grouped("agent"),
            partial,
            sides,
            self.repeated,
            details_count,
        )

    def rows(self) -> Iterator[dict[str, Any]]:
        """Each difference, in the order of the log."""
        for row in self._db.execute(_ROWS):
            change, scope, agent, detector, action, tool, mine, event, part, offset = row[:10]
            other_id, other_detector, other_action, other_event, other_offset, side = row[10:]
            fields = {
                "change": change,
                "scope": scope,
                "agent": agent,
                "detector": detector,
                "action": action,
                "tool": tool,
                "partition": part,
                side: {"id": mine, "event": event, "offset": offset},
            }
            if other_id is not None:
                fields["b"] = {"id": other_id, "event": other_event, "offset": other_offset}
                fields["b"] |= {"detector": other_detector, "action": other_action}
            yield fields

    def _load(self, side: SideName, verdicts: Iterable[tuple[Verdict, bytes]]) -> None:
        self._db.execute("begin")
        for verdict, value in verdicts:
            digest = hashlib.sha256(value).digest()
            seen = self._db.execute(
                "select digest from verdicts where side = ? and id = ? order by n",
                (side, verdict.id),
            ).fetchall()
            if (digest,) in seen:
                self.repeated += 1
                continue
            self._insert(side, verdict, len(seen), digest)
        self._db.execute("commit")

    def _insert(self, side: SideName, verdict: Verdict, n: int, digest: bytes) -> None:
        evidence = verdict.evidence
        row = (
            side,
            verdict.id,
            n,
            verdict.scope,
            verdict.agent,
            verdict.detector,
            verdict.action.value,
            verdict.tool,
            hashlib.sha256(verdict.key.encode("utf-8", "surrogatepass")).digest(),
            evidence.event,
            evidence.partition,
            evidence.offset,
            digest,
            _core(verdict),
        )
        marks = ", ".join("?" * len(row))
        self._db.execute(f"insert into verdicts values ({marks}, null, null)", row)  # noqa: S608

    def _exclude(self, scopes: Iterable[str]) -> None:
        rows = ((scope,) for scope in scopes)
        self._db.executemany("insert or ignore into partial values (?)", rows)

    def _match(self, query: str) -> None:
        self._db.executescript(
            f"""begin;
            create temp table pairs(a int, b int, change text);
            insert into pairs {query};
            update verdicts set change = p.change, other = p.b from pairs p
                where verdicts.rowid = p.a;
            update verdicts set change = p.change, other = p.a from pairs p
                where verdicts.rowid = p.b;
            drop table pairs;
            commit;"""  # noqa: S608 - the queries are ours
        )

    def _counts(self) -> dict[str, int]:
        counts = dict.fromkeys(CHANGES, 0)
        query = "select change, count(*) from verdicts where side = 'a' or other is null group by 1"
        return counts | dict(self._db.execute(query))

    def _grouped(self, column: Literal["detector", "agent"]) -> dict[str, dict[str, int]]:
        groups: dict[str, dict[str, int]] = {}
        query = f"""select coalesce({column}, ''), change, count(*) from verdicts
            where side = 'a' or other is null group by 1, 2 order by 1"""  # noqa: S608
        for name, change, count in self._db.execute(query):
            groups.setdefault(name, dict.fromkeys(CHANGES, 0))[change] = count
        return groups


def _core(verdict: Verdict) -> bytes:
    """What a verdict asks for and of what, without how that is told and where it came from."""
    parts = [getattr(verdict, name) for name in _DECIDED]
    text = repr([*parts, [target.model_dump() for target in verdict.applies_to]])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def canonical(recorded: RecordedVerdict) -> bytes:
    """A recorded verdict in the form that replays are compared in.

    Where the record's own bytes are not exactly what our encoder makes of the verdict, they stand
    for themselves: they are then equal to no replayed verdict.
    """
    form: Literal["json", "msgpack"] = "json" if is_json(recorded.value, None) else "msgpack"
    if encode_model(recorded.verdict, form) != recorded.value:
        return recorded.value
    return encode_model(recorded.verdict)
