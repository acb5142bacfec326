"""(a) The engine alone, in processor time of one core: steps a second.

* ``prints``: events with fingerprints, decoded already, through `Engine.step`. In ``looping`` each
  call is made although it is blocked, so that each publishes a verdict: the worst case.
* ``refused``: what a runner sends of a loop that is blocked: calls that it refused by itself.
* ``raw``: events with raw arguments and results: JSON reading, canonical text, SHA-256, step.
* ``vectors``: the shared random vectors, read from JSON and played as conformance plays them; the
  documented rules' Node reference does about 38,000/s of these, JSON reading included.

    python -m benchmarks.engine [--rounds N] [--steps N] [--shared FOLDER] [--json FILE]
"""

from __future__ import annotations

import argparse
import gc
import gzip
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Final

from benchmarks.kit.results import Result, Sample, interleaved
from benchmarks.reporting.tables import finish
from benchmarks.stepping.mixes import DISTINCT, MIXES, Event, Mix, prints, raw, refused
from loopstream.conformance import engine_player
from loopstream.engine import Engine
from loopstream.events import ToolCall
from loopstream.partition.raw import fingerprint_raw_call, fingerprint_raw_outcome
from loopstream.policy.deployment import Deployment
from loopstream.policy.settings import resolve
from loopstream.policy.verdicts import Position
from loopstream.state.run import RunState

HISTORIES: Final = (30, 300, 3_000)
VECTORS: Final = "documented-random-public.jsonl.gz"
DEPLOYMENT: Final = Deployment("bench")
# What fills the history is none of the calls that are measured.
EARLIER: Final = 1_000_000
# The same rules speak whatever the history's size: what is compared is its length alone.
EARLY: Final = {
    "enabled": True,
    "warningThreshold": 3,
    "criticalThreshold": 4,
    "globalCircuitBreakerThreshold": 5,
}
SOURCES: Final = {"prints": prints, "raw": raw, "refused": refused}


def stepped(mix: Mix, history: int, steps: int, source: str) -> Sample:
    """Steps over a history that is full before the clock starts; verdicts included."""
    limits = resolve({**EARLY, "historySize": history})
    engine, state = Engine(DEPLOYMENT), RunState("run-1", 0)
    for offset, event in enumerate(prints(mix, history + 10, EARLIER)):
        engine.step(state, event, limits, Position(0, offset, 0, event.time))
    make = SOURCES[source]
    events = list(islice(cycle(make(mix, DISTINCT)), steps))
    prepare = _hashed if source == "raw" else _given
    verdicts = 0
    gc.collect()
    began = time.process_time()
    for offset, event in enumerate(events, 2 * history + 20):
        at = Position(0, offset, 0, event.time)
        verdicts += len(engine.step(state, prepare(event), limits, at).verdicts)
    seconds = time.process_time() - began
    return {"rate": steps / seconds, "us": seconds / steps * 1e6, "verdicts": float(verdicts)}


def _given(event: Event) -> Event:
    return event


def _hashed(event: Event) -> Event:
    if isinstance(event, ToolCall):
        return fingerprint_raw_call(event, "documented", None, None)
    return fingerprint_raw_outcome(event, "documented", None, None)


def played(lines: list[str], *, read: bool) -> Sample:
    """The shared vectors; ``read``: JSON reading is in the time too."""
    scenarios = [json.loads(line) for line in lines]
    steps = sum(len(scenario["steps"]) for scenario in scenarios)
    gc.collect()
    began = time.process_time()
    for scenario in map(json.loads, lines) if read else iter(scenarios):
        player = engine_player(scenario, "documented")
        for step in scenario["steps"]:
            player.play(step)
    seconds = time.process_time() - began
    return {"rate": steps / seconds, "us": seconds / steps * 1e6}


def measures(
    result: Result, steps: int, lines: list[str]
) -> Iterator[tuple[str, Callable[[int], None]]]:
    """Every case, by name."""
    for source in SOURCES:
        for name, mix in MIXES.items():
            if source == "refused" and name != "looping":
                continue
            for history in HISTORIES:
                labels = {"source": source, "mix": name, "history": str(history)}
                work = partial(stepped, mix, history, steps, source)
                yield " ".join(labels.values()), _into(result, labels, work)
    for read in (True, False) if lines else ():
        labels = {"source": "vectors, read from JSON" if read else "vectors", "mix": "random"}
        work = partial(played, lines, read=read)
        yield labels["source"], _into(result, {**labels, "history": "varied"}, work)


def _into(
    result: Result, labels: dict[str, str], work: Callable[[], Sample]
) -> Callable[[int], None]:
    return lambda _turn: result.add(work(), **labels)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--shared", type=Path, default=Path(__file__).parents[2] / "shared")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    result = Result("engine", {"steps": given.steps, "rounds": given.rounds})
    lines: list[str] = []
    try:
        with gzip.open(given.shared / "vectors" / VECTORS, "rt") as file:
            lines = file.readlines()
    except FileNotFoundError:
        result.skip("vectors", f"{VECTORS} is not there; name its folder with --shared")
    interleaved(given.rounds, dict(measures(result, given.steps, lines)))
    finish(result, given.json)


if __name__ == "__main__":
    main()
