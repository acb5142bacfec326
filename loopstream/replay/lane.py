"""The replay of one partition: the fold, its rows, what of it is reported."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from loopstream.events import Pin, Verdict
from loopstream.partition import Partition, marker_key
from loopstream.partition.admission import TenantKey
from loopstream.partition.marker import Marker
from loopstream.partition.settings import SettingsInForce
from loopstream.policy.deployment import Deployment
from loopstream.policy.summary import summary_of
from loopstream.replay.controls import ReplaySources, may_hold_controls
from loopstream.replay.opening import Opening, controls_in
from loopstream.replay.records import Record, Window
from loopstream.replay.store import ReplayStore
from loopstream.replay.watch import Beginnings, FirstVerdicts, WatchedEngine, Watcher
from loopstream.replay.whatif import WhatIf
from loopstream.wire.signing import SIGNER, Verifier
from loopstream.wire.verdicts import encode_model

# States unpacked in memory, some 28 KB each; beyond, rows are packed and go to the store.
LIVE_RUNS: Final = 1_500
_RECORDED: Final = WhatIf()


@dataclass(frozen=True, slots=True)
class Chosen:
    """What of a window is reported: all, or some runs' or agents' verdicts."""

    scopes: frozenset[str] = frozenset()
    agents: frozenset[str] = frozenset()

    def takes(self, scope: str, verdict: Verdict) -> bool:
        """Whether a verdict is reported."""
        if self.scopes and scope not in self.scopes:
            return False
        return not self.agents or verdict.agent in self.agents

    def may_concern(self, key: bytes | None, value: bytes | None) -> bool:
        """Whether a record may hold something of the chosen runs; cheap, and never wrongly no."""
        if not self.scopes or (key is not None and key.decode("utf-8", "replace") in self.scopes):
            return True
        needles = self.needles()
        return not needles or any(needle in (value or b"") for needle in needles)

    def needles(self) -> tuple[bytes, ...]:
        """Bytes of which any record of the chosen runs holds at least one; empty: unknown."""
        names = [scope.lstrip("\0") for scope in self.scopes]
        # JSON may write other characters as escapes.
        if not all(name.isascii() and name.isprintable() for name in names):
            return ()
        if any(char in name for name in names for char in '"\\/<>&'):
            return ()
        return tuple(name.encode() for name in names)


@dataclass(slots=True)
class Tally:
    """What was folded and reported; adds up over partitions."""

    records: int = 0
    events: int = 0
    runs: int = 0
    verdicts: int = 0
    bytes: int = 0
    holes: int = 0
    trusted: int = 0
    unchecked: int = 0
    notes: Counter[str] = field(default_factory=Counter)
    rejects: Counter[str] = field(default_factory=Counter)
    by_detector: Counter[str] = field(default_factory=Counter)
    """Reported verdicts by ``detector/action``."""
    first: Counter[str] = field(default_factory=Counter)
    """What-if: runs by ``detector/action`` of their first verdict, where it is not censored."""
    stopped: int = 0
    """What-if: runs with a first stop that is not censored."""
    censored: int = 0
    """What-if: verdicts after a recorded refusal."""
    worst: int = 0
    """0 none, 1 warning, 2 critical."""

    def add(self, other: Tally) -> None:
        """Add another partition's."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in _COUNTERS:
            getattr(self, name).update(getattr(other, name))
        self.worst = max(self.worst, other.worst)

    def as_dict(self) -> dict[str, Any]:
        """JSON-like."""
        return {
            name: dict(value) if isinstance(value := getattr(self, name), Counter) else value
            for name in (*_SUMS, *_COUNTERS, "worst")
        }

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Tally:
        """What `as_dict` gave."""
        tally = cls()
        for name, value in fields.items():
            setattr(tally, name, Counter(value) if name in _COUNTERS else value)
        return tally


_SUMS: Final = (
    "records",
    "events",
    "runs",
    "verdicts",
    "bytes",
    "holes",
    "trusted",
    "unchecked",
    "stopped",
    "censored",
)
_COUNTERS: Final = ("notes", "rejects", "by_detector", "first")
_RANK: Final = {"none": 0, "warning": 1, "critical": 2}


@dataclass(frozen=True, slots=True)
class Begin:
    """Where a fold began, also if it is taken up again after retention has moved on.

    ``offset`` and ``time_ms`` are those of the first record that was left; offset 0 means that
    nothing before it is missing.
    """

    opening: Opening
    offset: int
    time_ms: int

    def as_dict(self) -> dict[str, Any]:
        """JSON-like."""
        opening = self.opening
        return {
            "pin": opening.pin.model_dump(mode="json"),
            "deployment": asdict(opening.deployment),
            "note": opening.note,
            "offset": self.offset,
            "time_ms": self.time_ms,
        }

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Begin:
        """What `as_dict` gave."""
        pin, deployment = Pin.model_validate(fields["pin"]), Deployment(**fields["deployment"])
        return cls(Opening(pin, deployment, fields["note"]), fields["offset"], fields["time_ms"])


@dataclass(frozen=True, slots=True)
class LanePlan:
    """All that decides what the replay of a partition comes to."""

    number: int
    partitions: int
    window: Window
    begun: Begin
    what: WhatIf = _RECORDED
    chosen: Chosen = field(default_factory=Chosen)
    key: TenantKey | None = None
    verifier: Verifier | None = None

    @property
    def deployment(self) -> Deployment:
        """The facts of the prefix."""
        return self.begun.opening.deployment


class Lane:
    """Folds one partition and writes what is reported as NDJSON.

    Args:
        store: rows and progress.
        folder: where the output goes.
        durable: they stay, to be taken up again.
        write: write verdicts; else they are only counted.
        more: further watchers of each step.
    """

    def __init__(
        self,
        plan: LanePlan,
        sources: ReplaySources,
        store: ReplayStore,
        folder: Path,
        *,
        durable: bool = False,
        write: bool = True,
        more: Sequence[Watcher] = (),
        live_runs: int = LIVE_RUNS,
    ) -> None:
        self.plan = plan
        self._sources = sources
        self._live_runs = live_runs
        self._store = store
        self._durable = durable
        self.path = folder / f"partition-{plan.number}.ndjson"
        self._out: IO[bytes] | None = None
        done = self._store.progress()
        self.tally = Tally() if done is None else Tally.of(done["tally"])
        self.next_offset: int = plan.window.begin if done is None else done["next"]
        self.partial: set[str] = set() if done is None else set(done["partial"])
        self._firsts = FirstVerdicts(None if done is None else done["firsts"])
        if write:
            self._out = self.path.open("ab")
            self._out.truncate(0 if done is None else done["length"])
            self._out.seek(0, 2)
        self._newest_ms = 0 if done is None else done["newest_ms"]
        self._needles = plan.chosen.needles()
        self._partition = self._fold(more)

    def _fold(self, more: Sequence[Watcher]) -> Partition:
        plan = self.plan
        deployment, number = plan.deployment, plan.number
        watchers = list(more)
        if plan.begun.offset > 0:
            watchers.append(Beginnings(plan.begun.time_ms, deployment.idle_ms, self.partial))
        if plan.what.active:
            watchers.append(self._firsts)
        return Partition(
            deployment,
            number,
            plan.partitions,
            self._store,
            self._sources,
            state=self._store.get(marker_key(number)) or plan.begun.opening.state(number),
            key=plan.key,
            verifier=plan.verifier,
            engine=WatchedEngine(deployment, watchers) if watchers else None,
            in_force=plan.what.in_force if plan.what.active else SettingsInForce,
        )

    @property
    def events(self) -> int:
        """Events applied so far."""
        return self.tally.notes["applied"] + self._partition.counts["applied"]

    def identity(self, scope: str) -> dict[str, Any]:
        """Who a run belongs to, and its totals, as of now; empty: it is not known."""
        state = self._partition.live.get(scope)
        return {} if state is None else summary_of(state, self.plan.deployment)

    def feed(self, records: Sequence[Record]) -> None:
        """Fold records in order; what is past the window is left out.

        Raises:
            CorruptStateError: a row of the state does not unpack.
        """
        partition, tally, until = self._partition, self.tally, self.plan.window.until
        expected, needles = self.next_offset, self._needles
        verifier = self.plan.verifier
        for record in records:
            offset = record.offset
            if offset < expected:
                continue
            if offset >= until:
                break
            tally.holes += offset - expected
            expected = offset + 1
            value = record.value or b""
            tally.records += 1
            tally.bytes += len(value)
            if may_hold_controls(value):
                self._sources.note(controls_in(record, verifier))
            elif needles and not any(needle in value for needle in needles):
                continue
            if verifier is None and record.headers:
                tally.unchecked += any(name == SIGNER and by for name, by in record.headers)
            partition.apply(record)
            if partition.verdicts or partition.dead_letters:
                self._report(offset)
        if records:
            self._newest_ms = max(self._newest_ms, records[-1].timestamp)
        self.next_offset = expected
        if partition.dirty >= self._live_runs:
            self.checkpoint()

    def checkpoint(self) -> None:
        """Write rows and progress down, and forget clean states."""
        partition, tally = self._partition, self.tally
        rows = partition.take_rows()
        tally.runs = Marker.unpack(rows[-1][1]).rows
        tally.notes.update(partition.counts)
        tally.events = tally.notes["applied"]
        partition.counts.clear()
        tally.trusted = self._sources.trusted
        dead_before = self._newest_ms - self.plan.deployment.idle_ms
        self._store.commit(rows, self._progress(), dead_before)
        partition.shrink(self._live_runs // 2)

    def _progress(self) -> dict[str, Any]:
        length = 0
        if self._out is not None:
            self._out.flush()
            if self._durable:
                os.fsync(self._out.fileno())
            length = self._out.tell()
        return {
            "next": self.next_offset,
            "newest_ms": self._newest_ms,
            "begin": self.plan.begun.as_dict(),
            "length": length,
            "tally": self.tally.as_dict(),
            "partial": sorted(self.partial),
            "firsts": self._firsts.as_dict(),
        }

    def close(self) -> None:
        """Close the output."""
        if self._out is not None:
            self._out.close()

    def _report(self, offset: int) -> None:
        """Write what a record came to, if it lies in the window."""
        partition = self._partition
        letters, partition.dead_letters = partition.dead_letters, []
        verdicts, partition.verdicts = partition.verdicts, []
        if offset < self.plan.window.since:
            self._firsts.marks.clear()
            return
        for letter in letters:
            self.tally.rejects[letter.code.value] += 1
        for scope, verdict in verdicts:
            if self.plan.chosen.takes(scope, verdict):
                self._one(scope, verdict)
        self._firsts.marks.clear()

    def _one(self, scope: str, verdict: Verdict) -> None:
        tally, name = self.tally, f"{verdict.detector}/{verdict.action.value}"
        marks = self._firsts.marks.get(verdict.id, {})
        tally.verdicts += 1
        tally.by_detector[name] += 1
        tally.worst = max(tally.worst, _RANK[verdict.level.value])
        tally.first[name] += "first" in marks
        tally.stopped += "first_stop" in marks
        tally.censored += "censored" in marks
        if self._out is not None:
            more = marks | {"partial": True} if scope in self.partial else marks
            self._out.write(verdict_line(verdict, more))


def verdict_line(verdict: Verdict, marks: Mapping[str, Any]) -> bytes:
    """A verdict as one line of a replay's output; what replay adds stands under ``replay``."""
    line = encode_model(verdict, "json")
    if marks:
        line = line[:-1] + b',"replay":' + json.dumps(marks).encode() + b"}"
    return line + b"\n"
