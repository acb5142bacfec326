"""A second engine, written from SEMANTICS sections 6 to 10 alone: plain lists, rescanned each time.

It knows nothing of the product's state or detectors. Steps come fingerprinted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import takewhile

from loopstream.detect.limits import Limits

CHURN = "argument_churn"


@dataclass(frozen=True)
class Call:
    tool: str
    signature: str
    poll: bool = False
    call_id: str | None = None
    run: str | None = None


@dataclass(frozen=True)
class Outcome:
    """``result`` None and no ``veto``: the outcome has no signature."""

    tool: str
    signature: str
    result: str | None = None
    call_id: str | None = None
    run: str | None = None
    unknown: str | None = None
    veto: bool = False
    no_progress: bool = False
    failure: str | None = None
    poll: bool = False


@dataclass(frozen=True)
class Compacted:
    run: str | None = None


NaiveStep = Call | Outcome | Compacted


@dataclass
class Rec:
    run: str
    tool: str
    signature: str
    call_id: str | None = None
    result: str | None = None
    unknown: str | None = None
    veto: bool = False
    no_progress: bool = False
    failure: str | None = None

    @property
    def pending(self) -> bool:
        return self.result is None and not self.veto


@dataclass(frozen=True)
class Found:
    level: str
    detector: str
    count: int
    key: str
    paired_tool: str | None = None
    liveness: str | None = None
    capped: bool = False


@dataclass(frozen=True)
class Watched:
    abort: bool = False
    armed: bool = False
    remaining: int = 0
    count: int = 0


@dataclass
class Guard:
    window: int
    remaining: int = 0
    seen: list[tuple[str, str, str]] = field(default_factory=list)

    def arm(self) -> None:
        self.remaining = self.window
        self.seen = []

    def observe(self, triple: tuple[str, str, str]) -> Watched:
        if self.remaining == 0:
            return Watched()
        self.remaining -= 1
        self.seen.append(triple)
        count = self.seen.count(triple)
        abort = count >= self.window
        return Watched(abort, self.remaining > 0, self.remaining, count if abort else 0)


class Naive:
    """One shared history for all the runs that are played into it."""

    def __init__(
        self, limits: Limits, *, latest: bool = False, veto: bool = False, first: bool = False
    ) -> None:
        self.limits = limits
        self.latest = latest
        self.veto = veto
        self.first = first
        self.history: list[Rec] = []
        self.buckets: dict[str, int] = {}
        self.guards: dict[str, Guard] = {}

    # -- steps -----------------------------------------------------------------------------

    def call(self, call: Call) -> tuple[Found | None, bool]:
        """The judgement, and whether it would be announced (a warning)."""
        found = self.judge(call)
        announced = found is not None and found.level == "warning" and self._announce(call, found)
        refused = self.veto and found is not None and found.level == "critical"
        if self.limits.entered and not refused:
            record = Rec(_scope(call.run), call.tool, call.signature, call.call_id)
            self.history.append(record)
            self._evict()
        return found, announced

    def outcome(self, outcome: Outcome) -> Watched | None:
        """What the guard says; None where nothing was recorded."""
        vetoed = outcome.veto and self.latest
        if outcome.result is None and not vetoed:
            return None
        scope = _scope(outcome.run)
        record = self._pending(outcome)
        if record is None:
            record = Rec(scope, outcome.tool, outcome.signature, outcome.call_id)
            self.history.append(record)
        record.result = outcome.result
        record.unknown = outcome.unknown
        record.veto = vetoed
        record.no_progress = outcome.no_progress
        record.failure = outcome.failure
        self._evict()
        guard = self.guards.get(scope)
        if guard is None or outcome.result is None:
            return Watched()
        return guard.observe((outcome.tool, outcome.signature, outcome.result))

    def compacted(self, compacted: Compacted) -> None:
        if self.limits.guard:
            scope = _scope(compacted.run)
            self.guards.setdefault(scope, Guard(self.limits.guard_window)).arm()

    def _pending(self, outcome: Outcome) -> Rec | None:
        for record in reversed(self.history):
            if (
                record.run == _scope(outcome.run)
                and record.signature == outcome.signature
                and record.tool == outcome.tool
                and record.pending
                and (not outcome.call_id or record.call_id == outcome.call_id)
            ):
                return record
        return None

    def _evict(self) -> None:
        while len(self.history) > self.limits.history_size:
            del self.history[0]

    def _announce(self, call: Call, found: Found) -> bool:
        key = f"{call.run}:{found.key}" if call.run else found.key
        bucket = found.count // 10
        heard = self.buckets.get(key, -1 if self.first else 0)
        if bucket <= heard:
            return False
        if key not in self.buckets and len(self.buckets) == 256:
            del self.buckets[next(iter(self.buckets))]
        self.buckets[key] = bucket
        return True

    # -- rules -----------------------------------------------------------------------------

    def judge(self, call: Call) -> Found | None:
        """First match wins (section 7, and for the newer version section 10).

        Detectors that are off or in shadow are not there. One that only warns leaves it to the
        others to refuse: only if none would, its own finding counts, as a warning.
        """
        matches = [f for f in self.matches(call) if self.mode(f.detector) in {"warn", "enforce"}]
        if not matches:
            return None
        first = matches[0]
        if first.level == "warning" or self.mode(first.detector) == "enforce":
            return first
        others = [f for f in matches if f.detector not in self.warning_only(matches)]
        if others and others[0].level == "critical":
            return others[0]
        return replace(first, level="warning", capped=True)

    def warning_only(self, matches: list[Found]) -> set[str]:
        """Detectors of which a critical finding is held back."""
        return {
            f.detector for f in matches if f.level == "critical" and self.mode(f.detector) == "warn"
        }

    def in_shadow(self, call: Call) -> Found | None:
        """What is published of the detectors in shadow: every block, now and then a warning."""
        shadowed = (f for f in self.matches(call) if self.mode(f.detector) == "shadow")
        found = next(shadowed, None)
        if found is None or found.level == "critical":
            return found
        heard = self._announce(call, replace(found, key=f"shadow:{found.key}"))
        return found if heard else None

    def mode(self, detector: str) -> str:
        rollout = self.limits.rollout
        return "enforce" if rollout is None else dict(rollout.modes).get(detector, "enforce")

    def matches(self, call: Call) -> list[Found]:
        if not self.limits.enabled:
            return []
        newest_first = [r for r in reversed(self.history) if r.run == _scope(call.run)]
        return list(self._matches(call, newest_first))

    def _matches(self, call: Call, newest_first: list[Rec]) -> Iterator[Found]:
        limits, tool, signature = self.limits, call.tool, call.signature
        unknown, name = unknown_streak(call, newest_first)
        if unknown >= limits.unknown_tool:
            key = f"unknown-tool:{tool}:{name}"
            yield Found("critical", "unknown_tool_repeat", unknown, key)
        count, result = self.no_progress(call, newest_first)
        same = f"{tool}:{signature}:{result or 'none'}"
        churn = self.churn(call, newest_first)
        signal = CHURN if churn >= 10 and self.mode(CHURN) in {"warn", "enforce"} else None
        if count >= limits.breaker:
            yield Found("critical", "global_circuit_breaker", count, f"global:{same}")
        if call.poll and limits.known_poll:
            if count >= limits.critical:
                yield Found("critical", "known_poll_no_progress", count, f"poll:{same}")
            if count >= limits.warning:
                yield Found(
                    "warning", "known_poll_no_progress", count, f"poll:{same}", liveness=signal
                )
        if limits.ping_pong:
            yield from self._ping_pong(call, newest_first, signal)
        repeat = limits.generic_repeat and not call.poll
        if repeat and count >= limits.critical:
            yield Found("critical", "generic_repeat", count, f"generic:{same}")
        if churn >= 10:
            key = f"argument-churn:{tool}"
            yield Found("warning", CHURN, churn, key, liveness=CHURN)
        repeats = sum(r.signature == signature for r in newest_first)
        if repeat and repeats >= limits.warning:
            yield Found("warning", "generic_repeat", repeats, f"generic:{tool}:{signature}")

    def _ping_pong(
        self, call: Call, newest_first: list[Rec], signal: str | None
    ) -> Iterator[Found]:
        count, evidence = ping_pong(call, newest_first)
        if count == 0:
            return
        last = newest_first[0]
        key = "pingpong:" + "|".join(sorted((last.signature, call.signature)))
        if count >= self.limits.critical and evidence:
            yield Found("critical", "ping_pong", count, key, last.tool)
        if count >= self.limits.warning:
            yield Found("warning", "ping_pong", count, key, last.tool, signal)

    # -- counts ----------------------------------------------------------------------------

    def no_progress(self, call: Call, newest_first: list[Rec]) -> tuple[int, str | None]:
        """N, and the result that it was counted by."""
        own = streak([r for r in newest_first if r.signature == call.signature])
        if self.latest and call.tool == "exec":
            across = streak(list(failures(call, newest_first)), by_failure=True)
            return across if across[0] > own[0] else own
        return own

    def churn(self, call: Call, newest_first: list[Rec]) -> int:
        """Calls of one tool under several signatures, all with one outcome (section 10)."""
        if not self.latest:
            return 0
        groups: dict[str, list[str]] = {}
        for record in takewhile(lambda r: r.tool == call.tool, newest_first):
            if record.result is None:
                continue
            group = groups.get(record.signature, [])
            if not record.no_progress or (group and group[0] != record.result):
                break
            groups.setdefault(record.signature, []).append(record.result)
        results = {result for group in groups.values() for result in group}
        holds = (
            len(groups) >= 2
            and all(len(group) >= 3 for group in groups.values())
            and len(results) == 1
            and call.signature in groups
        )
        return sum(map(len, groups.values())) if holds else 0


def streak(newest_first: list[Rec], *, by_failure: bool = False) -> tuple[int, str | None]:
    """Settled records with one equal result; vetoes count once such a one stands behind them."""
    count = vetoes = 0
    newest: Rec | None = None
    for record in newest_first:
        if record.pending:
            continue
        if record.veto:
            vetoes += 1
            continue
        newest = newest or record
        same_failure = by_failure and record.failure == newest.failure
        if record.result != newest.result and not same_failure:
            break
        count += 1 + vetoes
        vetoes = 0
    if newest is not None:
        return count, newest.result
    # Seen in the reference: refusals alone count for the very call, never across commands.
    return (0 if by_failure else vetoes), None


def failures(call: Call, newest_first: list[Rec]) -> Iterator[Rec]:
    """The typed failures (and vetoes) that are counted across commands."""
    met_other = False
    for record in newest_first:
        if record.tool != call.tool:
            return
        if record.pending:
            continue
        # Seen in the reference: a refusal neither meets another command nor comes again.
        if not record.veto:
            if record.failure is None:
                return
            if record.signature != call.signature:
                met_other = True
            elif met_other:
                return
        yield record


def unknown_streak(call: Call, newest_first: list[Rec]) -> tuple[int, str | None]:
    name = newest_first[0].unknown if newest_first else None
    if name is None:
        return 0, None
    same = takewhile(lambda r: r.tool == call.tool and r.unknown == name, newest_first)
    return len(list(same)), name


def ping_pong(call: Call, newest_first: list[Rec]) -> tuple[int, bool]:
    """P, and whether the outcomes are evidence of no progress."""
    if not newest_first:
        return 0, False
    last = newest_first[0].signature
    other = next((r.signature for r in newest_first if r.signature != last), None)
    if other is None or call.signature != other:
        return 0, False
    tail: list[Rec] = []
    for place, record in enumerate(newest_first):
        if record.signature != (last if place % 2 == 0 else other):
            break
        tail.append(record)
    if len(tail) < 2:
        return 0, False
    sides = [{r.result for r in tail if r.signature == side} for side in (last, other)]
    evidence = all(len(side) == 1 and None not in side for side in sides)
    return len(tail) + 1, evidence


def _scope(run: str | None) -> str:
    # JavaScript's trim (section 4), spelled out: str.strip() takes other characters.
    return (run or "").strip("\t\n\v\f\r \xa0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + _EN_QUAD)


_EN_QUAD = "".join(map(chr, range(0x2000, 0x200B)))
