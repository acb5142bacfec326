"""A runner's counters for Prometheus; needs ``prometheus-client``, which the SDK itself does not.

Not imported by `loopstream.sdk`: hosts that don't scrape pay nothing for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from loopstream.sdk.counters import NAMES

PREFIX: Final = "loopstream_sdk_"
LEVELS: Final = ("events_pending", "bytes_pending", "runs_live")


class Counted(Protocol):
    """A `Runner` or `AsyncRunner`, as far as it is read here."""

    @property
    def counters(self) -> dict[str, int]:
        """Counts by name."""
        ...

    @property
    def healthy(self) -> bool:
        """Whether events go out and verdicts come in."""
        ...


class RunnerCollector(Collector):
    """Metrics of one runner, read when they are scraped.

    ``REGISTRY.register(RunnerCollector(runner))`` of ``prometheus_client``. Counters are named
    ``loopstream_sdk_<counter>_total``, levels ``loopstream_sdk_<level>``. There are no labels; a
    process with several runners registers each in a registry of its own.
    """

    def __init__(self, runner: Counted) -> None:
        self._runner = runner

    def collect(self) -> Iterator[Metric]:
        """All families with the values of this moment."""
        counters = self._runner.counters
        for family, name in _families():
            value = float(self._runner.healthy) if name == "healthy" else counters[name]
            suffix = "_total" if family.type == "counter" else ""
            family.add_sample(family.name + suffix, {}, value)
            yield family

    def describe(self) -> Iterator[Metric]:
        """The families' names."""
        return (family for family, _ in _families())


def _families() -> Iterator[tuple[Metric, str]]:
    for name in NAMES:
        text = f"Counter {name} of the runner."
        yield Metric(PREFIX + name, text, "counter"), name
    for name in LEVELS:
        yield Metric(PREFIX + name, f"Level {name} of the runner.", "gauge"), name
    yield (
        Metric(PREFIX + "healthy", "1 while events go out and verdicts come in.", "gauge"),
        "healthy",
    )
