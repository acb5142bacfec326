"""How well the detectors do: writes docs/quality/report.md, for `extended` and `documented`.

    python benchmarks/detectors.py [--shared FOLDER] [--every N] [--write FILE]

Corpora: the shared scenarios, recorded real runs, loops spliced into these (an episode each), and
generated healthy look-alikes. Every run is only watched: nothing is refused, all of it is played.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.detecting.healthy import KINDS, look_alikes  # noqa: E402
from benchmarks.detecting.splices import LAPS, splices  # noqa: E402
from loopstream.engine import Engine  # noqa: E402
from loopstream.events import RunEvent  # noqa: E402
from loopstream.policy.deployment import Deployment, Profile  # noqa: E402
from loopstream.policy.extended_settings import resolve_for  # noqa: E402
from loopstream.policy.verdicts import Position  # noqa: E402
from loopstream.scenarios import LEVELS, Heard, Player, check_files, rising  # noqa: E402
from loopstream.state.run import RunState  # noqa: E402

PROFILES: Final[tuple[Profile, ...]] = ("extended", "documented")
STOPS: Final = ("block", "abort")
EACH: Final = 30


@dataclass(slots=True)
class Tally:
    """What one profile came to."""

    loops: int = 0
    stopped: int = 0
    delays: list[float] = field(default_factory=list)
    laps: list[float] = field(default_factory=list)
    by_detector: Counter[str] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)
    healthy: int = 0
    false_stops: Counter[str] = field(default_factory=Counter)
    false_warnings: Counter[str] = field(default_factory=Counter)
    real: int = 0
    real_stops: int = 0
    real_warnings: int = 0


def main() -> None:
    """Measure, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--every", type=int, default=1, help="Splice only each Nth real run.")
    parser.add_argument("--write", type=Path, default=ROOT / "docs" / "quality" / "report.md")
    given = parser.parse_args()
    with gzip.open(given.shared / "real" / "runs.jsonl.gz", "rt") as lines:
        runs = [json.loads(line) for line in lines]
    scenarios = given.shared / "scenarios" / "scenarios.jsonl"
    tallies = {profile: _measure(profile, runs, given.every) for profile in PROFILES}
    text = "\n".join(
        [*_head(), *_scenarios(scenarios), *_table(tallies), *_details(tallies), *_cost()]
    )
    given.write.parent.mkdir(parents=True, exist_ok=True)
    given.write.write_text(text + "\n")
    print(text)


def _heard(profile: Profile, events: Iterable[dict[str, Any]]) -> tuple[Heard, ...]:
    player = Player(profile)
    for event in events:
        player.play(event)
    return rising(player.verdicts)


def _measure(profile: Profile, runs: list[dict[str, Any]], every: int) -> Tally:
    tally = Tally()
    for run in runs:
        heard = _heard(profile, run["events"])
        tally.real += 1
        tally.real_stops += any(h.level in STOPS for h in heard)
        tally.real_warnings += any(h.level == "warn" for h in heard)
    for spliced in splices(runs[::every]):
        stops = [h for h in _heard(profile, spliced.events) if h.level in STOPS]
        tally.loops += 1
        if not stops:
            noise = "with" if spliced.volatile else "without"
            tally.missed.append(f"period {spliced.period}, {noise} volatile tokens")
            continue
        first = stops[0]
        tally.stopped += 1
        tally.by_detector[first.detector] += 1
        tally.delays.append(first.call - spliced.start)
        tally.laps.append((first.call - spliced.start) / spliced.period)
    for healthy in look_alikes(EACH):
        heard = _heard(profile, healthy.events)
        tally.healthy += 1
        level = heard[-1].level if heard else "none"
        if LEVELS.index(level) > LEVELS.index(healthy.limit):
            kind = healthy.name.rpartition("-")[0]
            wrong = tally.false_stops if level in STOPS else tally.false_warnings
            wrong[f"{kind} ({heard[-1].detector})"] += 1
    return tally


# -- the report ----------------------------------------------------------------------------


def _head() -> Iterator[str]:
    yield "# Quality of the detectors"
    yield ""
    yield "Written by `make bench-detectors`; what is measured is in [README.md](README.md)."
    yield ""


def _scenarios(file: Path) -> Iterator[str]:
    yield "## Scenarios"
    yield ""
    yield "| profile | closing line |"
    yield "|---|---|"
    for profile in PROFILES:
        yield f"| {profile} | `{check_files([file], profile).closing_line()}` |"
    yield ""


def _table(tallies: dict[Profile, Tally]) -> Iterator[str]:
    yield "## Episodes"
    yield ""
    yield "| | " + " | ".join(tallies) + " |"
    yield "|---|" + "---|" * len(tallies)
    rows: dict[str, list[object]] = {}
    for tally in tallies.values():
        wrong = sum(tally.false_stops.values()) + tally.real_stops
        quiet = tally.healthy + tally.real
        said = tally.stopped + wrong
        values: dict[str, object] = {
            f"spliced loops (up to {LAPS} laps)": tally.loops,
            "stopped": tally.stopped,
            "recall by episode": f"{tally.stopped / max(tally.loops, 1):.1%}",
            "precision by episode": f"{tally.stopped / said:.1%}" if said else "-",
            "delay in calls, median": statistics.median(tally.delays) if tally.delays else "-",
            "delay in laps, largest": f"{max(tally.laps):.1f}" if tally.laps else "-",
            "real runs": tally.real,
            "real runs stopped": tally.real_stops,
            "real runs warned": tally.real_warnings,
            "healthy look-alikes": tally.healthy,
            "look-alikes stopped": sum(tally.false_stops.values()),
            "look-alikes warned": sum(tally.false_warnings.values()),
            "false stops per 1,000 runs": f"{wrong * 1000 / quiet:.1f}",
        }
        for name, value in values.items():
            rows.setdefault(name, []).append(value)
    for name, cells in rows.items():
        yield f"| {name} | " + " | ".join(map(str, cells)) + " |"
    yield ""


def _details(tallies: dict[Profile, Tally]) -> Iterator[str]:
    for profile, tally in tallies.items():
        yield f"## {profile}: by detector"
        yield ""
        yield "| | what | episodes |"
        yield "|---|---|---|"
        for title, counter in (
            ("stopped by", tally.by_detector),
            ("missed", Counter(tally.missed)),
            ("false stop", tally.false_stops),
            ("false warning", tally.false_warnings),
        ):
            for name, count in sorted(counter.items(), key=lambda item: (-item[1], item[0])):
                yield f"| {title} | {name} | {count} |"
        yield ""
    yield f"Look-alikes: {EACH} each of {', '.join(KINDS)}."
    yield ""


# -- what it costs -------------------------------------------------------------------------

Made = tuple[str, dict[str, Any], str]
_WORKLOADS: Final[dict[str, Callable[[int], Made]]] = {
    "30 calls in rotation": lambda n: ("read", {"path": f"f{n % 30}.py"}, f"text {n % 30}"),
    "ever new calls": lambda n: ("read", {"path": f"f{n}.py"}, f"text {n}"),
    "a poll with progress": lambda n: ("process", {"action": "poll"}, f"line {n}"),
    "a cycle of five": lambda n: ("read", {"path": f"f{n % 5}.py"}, f"text {n % 5}"),
    "one call in a loop": lambda _: ("exec", {"command": "ls"}, "same"),
}
_STEPS: Final = 3_000
_ROUNDS: Final = 9


def _cost() -> Iterator[str]:
    yield "## Cost of a step"
    yield ""
    yield (
        f"Microseconds an event, medians of {_ROUNDS} rounds side by side, history full; verdicts "
        "included. Making a verdict "
        "costs more than all counting, and both profiles publish one with each call that is made "
        "although it is blocked. So compare like with like: of a cycle the documented rules see "
        "nothing, and what `extended` pays there is to be held against their own price of a loop."
    )
    yield ""
    yield "| workload | extended | documented | ratio |"
    yield "|---|---|---|---|"
    for name, make in _WORKLOADS.items():
        steps = [make(number) for number in range(_STEPS)]
        events = [_events(profile, steps) for profile in PROFILES]
        rounds = [
            tuple(map(_step_us, PROFILES, events))  # side by side: the machine's pace drifts
            for _ in range(_ROUNDS)
        ]
        ours, theirs = (statistics.median(column) for column in zip(*rounds, strict=True))
        ratio = statistics.median(one / other for one, other in rounds)
        yield f"| {name} | {ours:.1f} | {theirs:.1f} | {ratio:.1f} |"


def _events(profile: Profile, steps: list[tuple[str, dict[str, Any], str]]) -> list[RunEvent]:
    player, made = Player(profile), []
    for number, (tool, args, result) in enumerate(steps):
        base = {"run": "r", "tool": tool, "args": args, "call_id": f"c{number}"}
        made += [
            player.made({"op": "call", **base}),
            player.made({"op": "outcome", **base, "result": result}),
        ]
    return made


def _step_us(profile: Profile, events: list[RunEvent]) -> float:
    limits = resolve_for(profile, {"enabled": True})
    engine, state = Engine(Deployment(prefix="bench", profile=profile)), RunState("r", 0)
    begun = time.process_time()
    for offset, event in enumerate(events):
        engine.step(state, event, limits, Position(0, offset, 0, event.time))
    return (time.process_time() - begun) / len(events) * 1e6


if __name__ == "__main__":
    main()
