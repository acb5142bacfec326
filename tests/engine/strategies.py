"""Made-up sessions of few tools, few arguments and few results, so that every rule fires often."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from hypothesis import strategies as st

from loopstream.detect.base import DetectorName
from loopstream.detect.limits import Limits
from loopstream.detect.rollout import MODES, Rollout
from loopstream.events.tool import Disposition
from tests.engine.naive import Call, Compacted, NaiveStep, Outcome

RUNS = ("r1", " r1", "r2", None, "")
CALL_IDS = (None, "", "c1", "c2", "c3")
# (tool, arguments, poll): one tool with polls and other calls, one that the newer version counts
# across calls.
CALLS = (
    ("read", "a", False),
    ("read", "b", False),
    ("read", "c", False),
    ("exec", "a", False),
    ("exec", "b", False),
    ("exec", "c", False),
    ("process", "poll", True),
    ("process", "kill", False),
    ("command_status", "a", True),
)
JUDGES = tuple(name.value for name in DetectorName if name is not DetectorName.GUARD)
RUNNING: tuple[Disposition, ...] = ("executed", "executed", "executed", "gated", "refused")


def digest(text: str) -> str:
    """64 hexadecimal digits for a short text."""
    return hashlib.sha256(text.encode()).hexdigest()


def signature(tool: str, args: str) -> str:
    return f"{tool}:{digest(args)}"


@st.composite
def limits(draw: st.DrawFn) -> Limits:
    """Settings with tiny thresholds, mostly on, sometimes the fixed ones of the newer version."""
    if draw(st.integers(0, 9)) == 0:
        return Limits(enabled=True)
    warning = draw(st.integers(1, 4))
    critical = warning + draw(st.integers(1, 3))
    on = st.sampled_from((True, True, True, False))
    enabled = draw(st.sampled_from((True,) * 9 + (False,)))
    rolled_out = draw(rollouts())
    guard_mode = "enforce" if rolled_out is None else draw(st.sampled_from(MODES[1:]))
    return Limits(
        enabled=enabled,
        entered=enabled or draw(st.booleans()),
        history_size=draw(st.one_of(st.integers(1, 12), st.just(30))),
        warning=warning,
        critical=critical,
        unknown_tool=draw(st.integers(1, 4)),
        breaker=critical + draw(st.integers(1, 3)),
        generic_repeat=draw(on),
        known_poll=draw(on),
        ping_pong=draw(on),
        guard=draw(on),
        guard_window=draw(st.integers(1, 3)),
        guard_mode=guard_mode,
        rollout=rolled_out,
    )


def rollouts() -> st.SearchStrategy[Rollout | None]:
    """Modes by detector; mostly all are enforced."""
    mixed = st.fixed_dictionaries({name: st.sampled_from(MODES) for name in JUDGES})
    alone = st.tuples(st.sampled_from(JUDGES), st.sampled_from(MODES)).map(lambda one: dict([one]))
    return st.one_of(st.none(), st.none(), mixed.map(Rollout.of), alone.map(Rollout.of))


def call_of(spec: int, call_id: str | None, run: str | None) -> Call:
    tool, args, poll = CALLS[spec]
    return Call(tool, signature(tool, args), poll, call_id, run)


def outcome_of(
    spec: int, what: str, call_id: str | None, run: str | None, *, latest: bool
) -> Outcome:
    """An outcome as the profile's fingerprints would have it."""
    tool, args, poll = CALLS[spec]
    base = Outcome(tool, signature(tool, args), None, call_id, run, poll=poll)
    make: dict[str, Callable[[], Outcome]] = {
        "missing": lambda: base,
        "veto": lambda: _with(base, veto=latest),
        "unchanged": lambda: _with(base, result=digest("unchanged"), no_progress=latest),
        "error": lambda: _with(base, result="error:" + digest("e"), no_progress=latest),
        "unknown x": lambda: _unknown(base, "x", latest=latest),
        "unknown y": lambda: _unknown(base, "y", latest=latest),
        "failure 1": lambda: _failure(base, "1", latest=latest),
        "failure 2": lambda: _failure(base, "2", latest=latest),
        "failure 3": lambda: _failure(base, "3", latest=latest),
    }
    return make[what]() if what in make else _with(base, result=digest(what))


WHATS = (
    *("ok", "ok", "ok", "ok 2", "missing", "veto", "unchanged", "error"),
    *("unknown x", "unknown x", "unknown y", "failure 1", "failure 2", "failure 3"),
)
KINDS = (
    *("call", "outcome", "compaction", "race", "race", "loop", "loop"),
    *("pair", "pair", "rotation", "commands", "stuck"),
)


LENGTHS = {"rotation": (9, 24), "commands": (9, 24), "stuck": (18, 34)}


def _with(base: Outcome, **changes: object) -> Outcome:
    return Outcome(**(base.__dict__ | changes))


def _unknown(base: Outcome, name: str, *, latest: bool) -> Outcome:
    return _with(base, result="error:" + digest(name), unknown=name, no_progress=latest)


def _failure(base: Outcome, number: str, *, latest: bool) -> Outcome:
    """Failures 1 and 2 differ in volatile bits only."""
    typed = latest and base.tool == "exec"
    identity = digest("other cause" if number == "3" else "one cause")
    return _with(base, result=digest(f"failure {number}"), failure=identity if typed else None)


@st.composite
def steps(
    draw: st.DrawFn,
    *,
    latest: bool = False,
    runs: tuple[str | None, ...] = RUNS,
    max_parts: int = 12,
) -> list[NaiveStep]:
    """A session: single steps mixed with stretches that bring a rule near its threshold."""
    session: list[NaiveStep] = []
    for _ in range(draw(st.integers(min(3, max_parts), max_parts))):
        session += draw(_parts(latest=latest, runs=runs))
    return session


@st.composite
def _parts(draw: st.DrawFn, *, latest: bool, runs: tuple[str | None, ...]) -> list[NaiveStep]:
    run = draw(st.sampled_from(runs))
    spec = st.integers(0, len(CALLS) - 1)
    what = st.sampled_from(WHATS)
    call_id = st.sampled_from(CALL_IDS)
    kind = draw(st.sampled_from(KINDS))
    if kind == "call":
        return [call_of(draw(spec), draw(call_id), run)]
    if kind == "outcome":
        return [outcome_of(draw(spec), draw(what), draw(call_id), run, latest=latest)]
    if kind == "compaction":
        return [Compacted(run)]
    if kind == "race":
        return _race(draw, run, latest=latest)
    cycle = draw(_cycles(kind))
    stray = draw(st.booleans())
    part: list[NaiveStep] = []
    least, most = LENGTHS.get(kind, (2, 14))
    for turn in range(draw(st.integers(least, most))):
        at, outcome = cycle[turn % len(cycle)]
        if not stray:
            part.append(call_of(at, None, run))
        part.append(outcome_of(at, outcome, None, run, latest=latest))
    return part


def _cycles(kind: str) -> st.SearchStrategy[list[tuple[int, str]]]:
    """What comes in turns: anything, a stuck alternation, a rotation, failing commands."""
    spec = st.integers(0, len(CALLS) - 1)
    if kind == "pair":
        return st.lists(st.tuples(spec, st.just("ok")), min_size=2, max_size=2, unique=True)
    if kind == "stuck":
        return st.tuples(spec, st.sampled_from(("ok", "ok", "failure 1"))).map(lambda one: [one])
    if kind == "rotation":
        return st.sampled_from(("unchanged", "error")).map(lambda w: [(at, w) for at in range(3)])
    if kind == "commands":
        failure = st.sampled_from(("failure 1", "failure 2", "failure 1", "veto"))
        return st.lists(st.tuples(st.integers(3, 5), failure), min_size=3, max_size=5)
    return st.lists(st.tuples(spec, st.sampled_from(WHATS)), min_size=1, max_size=4)


def _race(draw: st.DrawFn, run: str | None, *, latest: bool) -> list[NaiveStep]:
    """Equal calls in flight at once that settle in any order, by call id; then one more."""
    spec = draw(st.integers(0, len(CALLS) - 1))
    names = draw(st.sampled_from((("c1", "c2", "c3", "c4", "c5"), ("c1", "c1", "c1", "c2", "c2"))))
    ids = draw(st.permutations(names))
    whats = draw(st.sampled_from((("ok", "ok", "ok 2"), ("unknown x", "unknown x", "ok"), WHATS)))
    part: list[NaiveStep] = [call_of(spec, call_id, run) for call_id in names]
    for call_id in ids:
        what = draw(st.sampled_from(whats))
        part.append(outcome_of(spec, what, call_id, run, latest=latest))
    return [*part, call_of(spec, None, run)]
