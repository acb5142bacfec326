"""The topics of one prefix: their names, and how each is configured."""

from __future__ import annotations

from dataclasses import dataclass

_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS
EVENTS_RETENTION_MS = 7 * _DAY_MS
VERDICTS_RETENTION_MS = 30 * _DAY_MS
# The largest row: 10,000 calls that share nothing, with the longest names, come to 4 MB.
MAX_ROW_BYTES = 8 * 1024 * 1024
TABLE = "runs"


@dataclass(frozen=True, slots=True)
class Topics:
    """Names of a prefix's topics."""

    prefix: str

    @property
    def events(self) -> str:
        """What runners report."""
        return f"{self.prefix}.events"

    @property
    def verdicts(self) -> str:
        """What runners obey."""
        return f"{self.prefix}.verdicts"

    @property
    def dead_letters(self) -> str:
        """Positions and reasons of what could not be used."""
        return f"{self.prefix}.dead-letters"

    @property
    def runs(self) -> str:
        """Latest summary of each run."""
        return f"{self.prefix}.runs"

    @property
    def config(self) -> str:
        """Settings blocks, one partition."""
        return f"{self.prefix}.config"

    @property
    def commands(self) -> str:
        """Operator commands, one partition."""
        return f"{self.prefix}.commands"

    @property
    def changelog(self) -> str:
        """Packed rows; Faust's name for the table's changelog."""
        return f"{self.prefix}.worker-{TABLE}-changelog"


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """One topic as it should be."""

    name: str
    partitions: int
    config: dict[str, str]


def plan(prefix: str, partitions: int) -> list[TopicPlan]:
    """All topics of a prefix; all have ``partitions`` but config and commands, which have one."""
    names = Topics(prefix)
    many = {
        names.events: _deleted(EVENTS_RETENTION_MS)
        # Append time drives expiry, so the broker must set it; room for a full record's overhead.
        | {"message.timestamp.type": "LogAppendTime", "max.message.bytes": str(1_200_000)},
        names.verdicts: _deleted(VERDICTS_RETENTION_MS),
        names.dead_letters: _deleted(EVENTS_RETENTION_MS),
        names.runs: _compacted("compact,delete") | {"retention.ms": str(VERDICTS_RETENTION_MS)},
        # The lag keeps the better row from compaction until every late writer is long gone.
        names.changelog: _compacted()
        | {"min.compaction.lag.ms": str(_HOUR_MS), "max.message.bytes": str(MAX_ROW_BYTES)},
    }
    # A control record in the events must find its source for as long as it lives itself.
    sourced = _compacted() | {
        "min.compaction.lag.ms": str(EVENTS_RETENTION_MS),
        "max.message.bytes": str(128 * 1024),
    }
    plans = [TopicPlan(name, partitions, config) for name, config in many.items()]
    return [*plans, TopicPlan(names.config, 1, sourced), TopicPlan(names.commands, 1, sourced)]


def _deleted(retention_ms: int) -> dict[str, str]:
    return {"cleanup.policy": "delete", "retention.ms": str(retention_ms)}


def _compacted(policy: str = "compact") -> dict[str, str]:
    return {"cleanup.policy": policy}
