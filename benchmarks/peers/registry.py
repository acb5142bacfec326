"""Who is measured: how each peer is started, what it can do, and why it may be missing."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final

from benchmarks.kit.feed import Framing, Kind
from benchmarks.kit.kafka import PARTITIONS
from benchmarks.peers.kafka_streams import build as kafka_streams

LIMIT: Final = "confluent_loop"
QUIX: Final = "quix"
OURS: Final = "loopstream_worker"
SINGLE: Final[Framing] = "single msgpack"
FRAMES: Final[Framing] = "frames of 50"
JSON: Final[Framing] = "single JSON"


@dataclass(frozen=True, slots=True)
class Peer:
    """One competitor.

    Attributes:
        name: its label, and its module in `benchmarks.peers`.
        durable: it keeps state over a crash.
        does: (work, framing) that it is measured with.
        missing: why it can't run here; None: it can.
        command: how it is started; the options of `report.arguments` follow.
        slow: it gets an eighth of the input.
    """

    name: str
    durable: bool
    does: tuple[tuple[Kind, Framing], ...]
    missing: Callable[[], str | None]
    command: Callable[[], list[str]]
    slow: bool = False


def _module(name: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, "-m", f"benchmarks.peers.{name}"]


def _needs(package: str) -> Callable[[], str | None]:
    return lambda: None if find_spec(package) else f"{package} is not installed"


def _jvm_missing() -> str | None:
    lacking = [tool for tool in ("java", "javac", "mvn") if shutil.which(tool) is None]
    return f"a JDK and Maven are needed, {', '.join(lacking)} not found" if lacking else None


_STREAKS: Final[tuple[tuple[Kind, Framing], ...]] = tuple(
    ("streak", framing) for framing in (SINGLE, FRAMES, JSON)
)
_ENGINE: Final[tuple[tuple[Kind, Framing], ...]] = tuple(
    ("engine", framing) for framing in (SINGLE, FRAMES, JSON)
)
_BY_RUN: Final[tuple[tuple[Kind, Framing], ...]] = (
    ("streak", SINGLE),
    ("streak", JSON),
    ("engine", SINGLE),
    ("engine", JSON),
)
_ONE: Final[tuple[tuple[Kind, Framing], ...]] = (("streak", SINGLE),)

# Ours last: it adds its pin to the events topic.
PEERS: Final = (
    Peer(LIMIT, False, _STREAKS + _ENGINE, _needs("confluent_kafka"), _module(LIMIT)),
    Peer(
        "faststream",
        False,
        (*_ONE, ("streak", FRAMES)),
        _needs("faststream"),
        _module("faststream_batches"),
    ),
    Peer("kafka_streams", True, _ONE, _jvm_missing, kafka_streams.command),
    Peer("bytewax", True, _ONE, _needs("bytewax"), _module("bytewax_sqlite")),
    # State of Quix belongs to the key of a record: frames of many runs are not for it.
    Peer(QUIX, True, _BY_RUN, _needs("quixstreams"), _module(QUIX)),
    Peer("faust", True, _ONE, _needs("faust"), _module("faust_stock"), slow=True),
    Peer(OURS, True, _STREAKS + _ENGINE, _needs("faust"), _module(OURS)),
)


def command(
    peer: Peer, bootstrap: str, prefix: str, out: str, kind: Kind, events: int
) -> list[str]:
    """A peer's command line, its options included."""
    options: dict[str, Any] = {
        "--bootstrap": bootstrap,
        "--topic": f"{prefix}.events",
        "--out": out,
        "--name": f"{prefix}-{peer.name}",
        "--events": events,
        "--partitions": PARTITIONS,
        "--work": kind,
    }
    return [*peer.command(), *(str(word) for pair in options.items() for word in pair)]


def available(wanted: list[str] | None = None) -> tuple[list[Peer], dict[str, str]]:
    """Peers that can run here, and why the others can't."""
    peers, missing = [], {}
    for peer in PEERS:
        if wanted and peer.name not in wanted:
            continue
        why = peer.missing()
        if why is None:
            peers.append(peer)
        else:
            missing[peer.name] = why
    return peers, missing
