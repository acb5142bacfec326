"""What came of a soak, as a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import psutil

from tests.faults.soak.oracle import Finding, examples

_ROWS: Final = 40


@dataclass(frozen=True, slots=True)
class Sample:
    """The fleet at one moment; memory in MiB, for each live worker."""

    at_s: float
    events: int
    lag: int
    rss: tuple[float, ...]
    descriptors: tuple[int, ...]


def measure(at_s: float, events: int, lag: int, pids: Sequence[int]) -> Sample:
    """Look at these processes; one that has just ended is left out."""
    rss: list[float] = []
    descriptors: list[int] = []
    for pid in pids:
        try:
            process = psutil.Process(pid)
            rss.append(process.memory_info().rss / 2**20)
            descriptors.append(process.num_fds())
        except psutil.Error:
            continue
    return Sample(at_s, events, lag, tuple(rss), tuple(descriptors))


@dataclass(slots=True)
class Outcome:
    """All figures of a soak."""

    command: str
    begun: str
    seconds: float
    faults: Counter[str]
    exits: Counter[str]
    starts: int
    events: int
    records: int
    runs: int
    verdicts: int
    replayed: int
    letters: int
    notes: Counter[str]
    finding: Finding
    samples: list[Sample] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Nothing was lost, made up, said twice with two contents, or kept wrongly."""
        return self.finding.clean and not self.troubles and self.verdicts > 0

    def closing_line(self) -> str:
        finding = self.finding
        return (
            f"faults={self.faults.total()} events={self.events} verdicts={self.verdicts} "
            f"replayed={self.replayed} lost={len(finding.lost)} phantom={len(finding.phantom)} "
            f"duplicate_effects={len(finding.duplicate_effects)} "
            f"wrong_rows={len(finding.wrong_rows)}"
        )


def page(outcome: Outcome) -> str:
    """The report in Markdown."""
    return (
        "\n\n".join(
            ["# Soak", _summary(outcome), _faults(outcome), _differences(outcome), _course(outcome)]
        )
        + "\n"
    )


def _summary(outcome: Outcome) -> str:
    return f"""Made by `{outcome.command}`, begun {outcome.begun}, {outcome.seconds:.0f} s of load.

```
{outcome.closing_line()}
```

* **events**: applied by the pure engine over the whole topic ({outcome.records} records,
  {outcome.runs} runs). Verdicts, dead letters and rows are compared with it byte for byte.
* **verdicts**: decisions; **replayed**: records that repeat one, after a replay.
* **lost**, **phantom**: verdicts and dead letters ({outcome.letters}) missing, or made up.
* **duplicate_effects**: ids published with two contents, or with another than the engine's.
* **wrong_rows**: rows that the next owner would recover and that differ from the engine's."""


def _faults(outcome: Outcome) -> str:
    lines = ["## Faults", "", "| fault | count |", "|---|---|"]
    lines += [f"| {kind} | {count} |" for kind, count in sorted(outcome.faults.items())]
    lines += ["", f"Worker processes started: {outcome.starts}. Ends that nobody asked for "]
    told = ", ".join(f"{code}: {count}" for code, count in sorted(outcome.exits.items()))
    lines[-1] += f"(a supervisor starts them again): {told or 'none'}."
    notes = ", ".join(f"{name} {count}" for name, count in sorted(outcome.notes.items()))
    return "\n".join([*lines, "", f"Notes of the engine: {notes}."])


def _differences(outcome: Outcome) -> str:
    finding = outcome.finding
    lines = ["## Differences", ""]
    found = [
        f"* {name}: {examples(names)}"
        for name, names in (
            ("lost", finding.lost),
            ("phantom", finding.phantom),
            ("duplicate effects", finding.duplicate_effects),
            ("wrong rows", finding.wrong_rows),
        )
        if names
    ]
    found += [f"* {trouble}" for trouble in outcome.troubles]
    return "\n".join([*lines, *(found or ["None."])])


def _course(outcome: Outcome) -> str:
    lines = [
        "## Over time",
        "",
        "| s | events | lag (records) | workers | RSS, MiB | descriptors |",
        "|---|---|---|---|---|---|",
    ]
    step = max(1, -(-len(outcome.samples) // _ROWS))
    for one in outcome.samples[::step]:
        rss = " ".join(f"{value:.0f}" for value in one.rss)
        files = " ".join(map(str, one.descriptors))
        row = (f"{one.at_s:.0f}", one.events, one.lag, len(one.rss), rss, files)
        lines.append("| " + " | ".join(map(str, row)) + " |")
    return "\n".join(lines)
