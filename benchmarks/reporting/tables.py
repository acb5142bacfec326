"""A result as a Markdown table."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.kit.results import Case, Result, say, shown
from benchmarks.reporting.spec import TABLES, Against, Figure, Table


def markdown(result: Result) -> str:
    """Title, text, one row a case; figures and ratios that no case has are left out."""
    table = next(table for table in TABLES if table.benchmark == result.benchmark)
    return "\n".join([f"## {table.title}", "", table.text, "", *_rows(table, result), ""])


def finish(result: Result, path: Path | None = None) -> None:
    """Write the result, and print its table."""
    say(f"written: {result.save(path)}")
    sys.stdout.write(markdown(result) + "\n")


def _rows(table: Table, result: Result) -> Iterator[str]:
    labels = list(dict.fromkeys(name for case in result.cases for name in case.labels))
    figures = [figure for figure in table.figures if _has(result, figure.name)]
    ratios = [
        against
        for against in table.against
        if any(_ratio(result, case, against) is not None for case in result.cases)
    ]
    headings = [
        *labels,
        *(f"{f.heading} (least to most)" if f.spread else f.heading for f in figures),
        *(against.heading for against in ratios),
    ]
    yield f"| {' | '.join(headings)} |"
    yield "|---" * len(headings) + "|"
    for case in result.cases:
        cells = [case.labels.get(name, "") for name in labels]
        cells += [_cell(case, figure) for figure in figures]
        cells += [_shown(_ratio(result, case, against)) for against in ratios]
        yield f"| {' | '.join(cells)} |"
    for what, why in result.skipped.items():
        yield ""
        yield f"**Not measured: {what}**: {why}."
    told = ", ".join(f"{name} {value}" for name, value in result.settings.items())
    rounds = max((len(case.rounds) for case in result.cases), default=0)
    yield ""
    yield f"Median of up to {rounds} rounds ({told}); {result.made}."


def _has(result: Result, figure: str) -> bool:
    return any(case.values(figure) for case in result.cases)


def _cell(case: Case, figure: Figure) -> str:
    spread = case.spread(figure.name)
    if spread is None:
        return ""
    if not figure.spread or len(case.values(figure.name)) == 1:
        return shown(spread.median)
    return f"{shown(spread.median)} ({shown(spread.least)} to {shown(spread.greatest)})"


def _ratio(result: Result, case: Case, against: Against) -> float | None:
    other = next(
        (each for each in result.cases if each.labels == {**case.labels, **dict(against.labels)}),
        None,
    )
    return None if other is case else result.ratio(against.figure, case, other)


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
