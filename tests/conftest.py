"""What every test may use: the shared papers and one broker for the whole session."""

from __future__ import annotations

import hashlib
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import hypothesis
import pytest

from loopstream.broker import EmbeddedKafka
from loopstream.build import engine_build

# How fast a machine draws says nothing about us.
hypothesis.settings.register_profile(
    "here", suppress_health_check=[hypothesis.HealthCheck.too_slow], deadline=None
)
hypothesis.settings.load_profile("here")

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"


def pytest_configure() -> None:
    """What is tested starts as users start it, and is what the source says."""
    # A shell has what it starts in the background ignore Ctrl-C, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _refuse_stale_modules()


def _refuse_stale_modules() -> None:
    """Compiled modules that are older than their source would be what is tested."""
    for module in (ROOT / "loopstream").rglob("*.so"):
        source = module.with_name(f"{module.name.split('.')[0]}.py")
        if not source.exists() or source.stat().st_mtime > module.stat().st_mtime:
            pytest.exit(f"{module} is stale: run `make compiled`, or `make pure`.", returncode=4)


def pytest_report_header() -> str:
    """Which of the two builds is tested."""
    return f"engine: {engine_build()}"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What runs real brokers and workers gets one more try, and says so in the summary.

    Such a test waits for other processes within bounds; on a machine that others load, a bound
    can be missed once. A fault of ours shows again.
    """
    weights: Counter[Path] = Counter()
    for item in items:
        if item.get_closest_marker("kafka") is not None:
            item.add_marker(pytest.mark.flaky(reruns=1))
            weights[item.path] += 1
    # Files are shared out whole: the long ones first, or they are what all wait for at the end.
    items.sort(key=lambda item: -weights[item.path])


@pytest.fixture(scope="session")
def kafka() -> Iterator[EmbeddedKafka]:
    """A started broker with an empty data folder, shared by the session; do not stop it."""
    with EmbeddedKafka() as broker:
        yield broker


@pytest.fixture(scope="session")
def bootstrap(request: pytest.FixtureRequest) -> str:
    """``host:port`` of the cluster in LOOPSTREAM_BOOTSTRAP, else of `kafka`."""
    given = os.environ.get("LOOPSTREAM_BOOTSTRAP")
    if given:
        return given
    broker: EmbeddedKafka = request.getfixturevalue("kafka")
    return broker.bootstrap


@pytest.fixture
def prefix(request: pytest.FixtureRequest) -> str:
    """A topic prefix that no other test, nor the same test in another session, has."""
    text = f"{request.node.nodeid}{uuid4()}"
    return f"t{hashlib.sha256(text.encode()).hexdigest()[:10]}"
