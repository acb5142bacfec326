"""What a worker counts. Plain numbers; the metrics endpoint and the tests read them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Any

from loopstream.runtime.measures import Measures


@dataclass(slots=True)
class Stats:
    """Counters since the process started, and a few levels."""

    records: int = 0
    """Event records applied."""
    checkpoints: int = 0
    checkpoints_abandoned: int = 0
    rows: int = 0
    """Rows written to the changelog."""
    tombstones: int = 0
    reasserted: int = 0
    """Rows written again because a late writer's row was the last in the changelog."""
    verdicts: int = 0
    dead_letters: int = 0
    summaries: int = 0
    controls: int = 0
    pins: int = 0
    rebalances: int = 0
    stale_batches: int = 0
    jumps: int = 0
    """Offsets that the log itself does not have (retention, transaction markers)."""
    blocked: int = 0
    """Times that fetching paused for want of room."""
    checkpoint_seconds: float = 0.0
    """Duration of the last checkpoint."""
    notes: Counter[str] = field(default_factory=Counter)
    """What the fold noted, by reason."""
    rejects: Counter[str] = field(default_factory=Counter)
    """Dead letters by code."""
    actions: Counter[str] = field(default_factory=Counter)
    """Verdicts by action."""
    measures: Measures = field(default_factory=Measures)

    def as_dict(self) -> dict[str, Any]:
        """All of it but the measures, as plain values."""
        values = {spec.name: getattr(self, spec.name) for spec in fields(self)}
        del values["measures"]
        return {
            name: dict(value) if isinstance(value, Counter) else value
            for name, value in values.items()
        }
