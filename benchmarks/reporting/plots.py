"""Which plots the report has, of what was measured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from benchmarks.kit.results import Result
from benchmarks.kit.stats import Spread
from benchmarks.reporting.svg import Points, bars, lines


def plots(results: Mapping[str, Result]) -> Iterator[tuple[str, str, str]]:
    """(benchmark, file name, SVG) of each plot that there is something for."""
    if worker := results.get("worker"):
        for work in dict.fromkeys(case.labels["work"] for case in worker.cases):
            rates = _spreads(worker, "rate", work=work)
            title = f"Catch-up, {work} work"
            name = "".join(letter if letter.isalnum() else "-" for letter in work).strip("-")
            yield "worker", f"worker-{name}.svg", bars(title, "events/s", rates, "loopstream")
    if delay := results.get("delay"):
        for figure in ("p50", "p99"):
            series = _by_number(delay, figure, "rate", path="records", work="engine")
            if series:
                title = f"Verdict delay {figure}"
                plot = lines(title, "events/s", "ms", series, log_x=True)
                yield "delay", f"delay-{figure}.svg", plot
    if scale := results.get("scale"):
        series = _by_number(scale, "rate", "runs")
        plot = lines("Live runs", "live runs", "events/s", series, log_x=True)
        yield "scale", "scale.svg", plot
    if overload := results.get("overload"):
        for number, (name, points) in enumerate(overload.series.items()):
            if points:
                title, _, what = name.partition(": ")
                plot = lines(title, "seconds", what, {what: points})
                yield "overload", f"overload-{number}.svg", plot


def _spreads(result: Result, figure: str, **labels: str) -> dict[str, Spread]:
    found = {}
    for case in result.find(**labels):
        spread = case.spread(figure)
        if spread is not None:
            found[f"{case.labels['peer']}, {case.labels['framing']}"] = spread
    return found


def _by_number(result: Result, figure: str, axis: str, **labels: str) -> dict[str, Points]:
    """Series along a label that is a number, one for each value of the labels left over."""
    series: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for case in result.find(**labels):
        median = case.median(figure)
        if median is not None:
            others = [v for k, v in case.labels.items() if k != axis and k not in labels]
            at = float(case.labels[axis].replace(",", ""))
            series[" ".join(others)].append((at, median))
    return {name: sorted(points) for name, points in series.items()}
