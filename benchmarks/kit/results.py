"""The one shape of all results: cases with labels, and one sample of figures a round.

A file ``<benchmark>.json``::

    {"benchmark": "worker", "made": "2026-11-30T18:00:00+00:00", "machine": {...},
     "settings": {"events": 400000},
     "cases": [{"labels": {"peer": "quix"}, "rounds": [{"rate": 46000.0}, ...]}, ...],
     "series": {"overload: lag": [[0.0, 0.0], [1.0, 31000.0], ...]},
     "skipped": {"kafka_streams": "no JDK and Maven on this machine"}}
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from benchmarks.kit.stats import Spread, ratio
from loopstream.build import engine_build

FOLDER: Final = Path(__file__).resolve().parents[1] / "results"

Sample = dict[str, float]


def _machine() -> dict[str, Any]:
    """What the figures depend on; nothing that names the machine."""
    return {
        "cores": os.cpu_count(),
        "processor": _first_line("/proc/cpuinfo", "model name"),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "python": platform.python_version(),
        "system": platform.system(),
        "engine": engine_build(),
    }


def _first_line(file: str, key: str) -> str:
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(key)), "")


@dataclass(slots=True)
class Case:
    """One thing measured: what it was, and a sample of figures by name for each round."""

    labels: dict[str, str]
    rounds: list[Sample] = field(default_factory=list)

    def values(self, figure: str) -> list[float]:
        """A figure, round by round, where a round has it."""
        return [sample[figure] for sample in self.rounds if figure in sample]

    def spread(self, figure: str) -> Spread | None:
        """Least, median, greatest; None if no round has the figure."""
        values = self.values(figure)
        return Spread.of(values) if values else None

    def median(self, figure: str) -> float | None:
        """The median; None if no round has the figure."""
        spread = self.spread(figure)
        return None if spread is None else spread.median


@dataclass(slots=True)
class Result:
    """All cases of one benchmark."""

    benchmark: str
    settings: dict[str, Any] = field(default_factory=dict)
    cases: list[Case] = field(default_factory=list)
    series: dict[str, list[list[float]]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=_machine)
    made: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    def add(self, sample: Sample, **labels: str) -> None:
        """One more round of the case with these labels; also said on stderr as it comes."""
        case = next((case for case in self.cases if case.labels == labels), None)
        if case is None:
            case = Case(labels)
            self.cases.append(case)
        case.rounds.append(sample)
        told = ", ".join(f"{name} {shown(value)}" for name, value in sample.items())
        say(f"{self.benchmark}: {' '.join(labels.values())}: {told}")

    def skip(self, what: str, why: str) -> None:
        """Something could not be measured; it shows in the report."""
        self.skipped[what] = why
        say(f"{self.benchmark}: SKIPPED {what}: {why}")

    def find(self, **labels: str) -> Iterator[Case]:
        """All cases that have these labels among theirs."""
        return (case for case in self.cases if labels.items() <= case.labels.items())

    def case(self, **labels: str) -> Case | None:
        """The first of these."""
        return next(self.find(**labels), None)

    def ratio(self, figure: str, one: Case | None, other: Case | None) -> float | None:
        """Median ratio of two cases of interleaved rounds; None if one was not measured."""
        if one is None or other is None:
            return None
        ours, theirs = one.values(figure), other.values(figure)
        return ratio(ours, theirs) if ours and len(ours) == len(theirs) and all(theirs) else None

    def save(self, path: Path | None = None) -> Path:
        """Write the file; where."""
        path = path or FOLDER / f"{self.benchmark}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")
        return path

    @classmethod
    def load(cls, path: Path) -> Result:
        """Read what `save` wrote."""
        told = json.loads(path.read_text(encoding="utf-8"))
        cases = [Case(**case) for case in told.pop("cases")]
        return cls(cases=cases, **told)


def shown(value: float) -> str:
    """A figure with as many digits as it deserves."""
    size = abs(value)
    if size >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 0.1 else f"{value:.3g}"


def say(text: str) -> None:
    """Talk goes to stderr; data to files and stdout."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def interleaved(rounds: int, measures: dict[str, Callable[[int], None]]) -> None:
    """Each measure once a round, the rounds one after the other.

    Args:
        rounds: how many.
        measures: by name; each is told the number of the round.
    """
    for turn in range(rounds):
        for name, measure in measures.items():
            say(f"-- round {turn + 1} of {rounds}: {name}")
            measure(turn)
