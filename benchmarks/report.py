"""Makes docs/performance/report.md, its plots and its data of what the benchmarks wrote.

    python -m benchmarks.report [--results FOLDER] [--docs FOLDER]

Results that are newer than the kept ones replace them; the others stay, so that one benchmark can
be measured anew.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.kit.results import FOLDER, Result, say, shown
from benchmarks.reporting import targets
from benchmarks.reporting.plots import plots
from benchmarks.reporting.spec import TABLES
from benchmarks.reporting.tables import markdown

DOCS: Final = Path(__file__).resolve().parents[1] / "docs" / "performance"
MET: Final = {True: "yes", False: "**no**", None: "not measured"}


def gather(fresh: Path, kept: Path) -> dict[str, Result]:
    """Results by benchmark, in the order of the report: the later one of each."""
    found: dict[str, Result] = {}
    for table in TABLES:
        files = [folder / f"{table.benchmark}.json" for folder in (kept, fresh)]
        results = [Result.load(file) for file in files if file.exists()]
        if results:
            found[table.benchmark] = max(results, key=lambda result: result.made)
    return found


def write(results: Mapping[str, Result], docs: Path) -> None:
    """The page, its plots, and the data that they were made of."""
    drawn: dict[str, list[str]] = {}
    docs.mkdir(parents=True, exist_ok=True)
    for benchmark, name, svg in plots(results):
        (docs / name).write_text(svg, encoding="utf-8")
        drawn.setdefault(benchmark, []).append(name)
    for name, result in results.items():
        result.save(docs / "data" / f"{name}.json")
    text = "\n".join(page(results, drawn))
    (docs / "report.md").write_text(text.rstrip() + "\n", encoding="utf-8")


def page(results: Mapping[str, Result], drawn: Mapping[str, list[str]]) -> Iterator[str]:
    """The report's lines."""
    yield "# Performance: the report"
    yield ""
    yield "Written by `make bench-report`; what is measured, and how, is in [README.md](README.md)."
    yield ""
    for facts in _machines(results):
        yield f"Machine: {', '.join(f'{name} {value}' for name, value in facts.items())}."
        yield ""
    yield "## Targets"
    yield ""
    yield "| what | target | measured | met |"
    yield "|---|---|---|---|"
    for what, bound, value, met in targets.rows(results):
        yield f"| {what} | {bound} | {'' if value is None else shown(value)} | {MET[met]} |"
    yield ""
    for name, result in results.items():
        yield markdown(result)
        for plot in drawn.get(name, ()):
            yield f"![{plot.removesuffix('.svg')}]({plot})"
            yield ""


def _machines(results: Mapping[str, Result]) -> list[dict[str, Any]]:
    machines: list[dict[str, Any]] = []
    for result in results.values():
        if result.machine not in machines:
            machines.append(result.machine)
    return machines


def main() -> None:
    """Gather and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=FOLDER)
    parser.add_argument("--docs", type=Path, default=DOCS)
    given = parser.parse_args()
    results = gather(given.results, given.docs / "data")
    if not results:
        raise SystemExit(f"no results in {given.results}: run `make bench` first")
    write(results, given.docs)
    say(f"written: {given.docs / 'report.md'} of {', '.join(results)}")


if __name__ == "__main__":
    main()
