"""An examination of a deployment: its words, and the order in which things must work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from loopstream.cli.hints import completed
from loopstream.errors import EXIT_KAFKA, LoopstreamError

if TYPE_CHECKING:
    from loopstream.config import Settings
    from loopstream.runtime.topics import TopicPlan, Topics


class Role(StrEnum):
    """What a Kafka user is for."""

    WORKER = "worker"
    RUNNER = "runner"
    OPERATOR = "operator"
    FORENSICS = "forensics"


class State(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"


# Of one who asks `doctor` about everything.
_LOOK: Final = frozenset({"DESCRIBE", "DESCRIBE_CONFIGS"})

RIGHTS: Final[Mapping[Role, Mapping[str, frozenset[str]]]] = {
    Role.WORKER: {
        "events": frozenset({"READ", "WRITE", "DESCRIBE"}),
        "changelog": frozenset({"READ", "WRITE", "DESCRIBE"}),
        "verdicts": frozenset({"WRITE", "DESCRIBE"}),
        "dead_letters": frozenset({"WRITE", "DESCRIBE"}),
        "runs": frozenset({"WRITE", "DESCRIBE"}),
        "config": frozenset({"READ", "DESCRIBE"}),
        "commands": frozenset({"READ", "DESCRIBE"}),
    },
    Role.RUNNER: {
        "events": frozenset({"WRITE", "DESCRIBE"}),
        "verdicts": frozenset({"READ", "DESCRIBE"}),
    },
    Role.OPERATOR: {
        "config": frozenset({"READ", "WRITE", *_LOOK}),
        "commands": frozenset({"READ", "WRITE", *_LOOK}),
        # What the dashboard reads; a run's story and settings that are tried out replay the events.
        "events": frozenset({"READ", *_LOOK}),
        "verdicts": frozenset({"READ", *_LOOK}),
        "runs": frozenset({"READ", *_LOOK}),
        "dead_letters": frozenset({"READ", *_LOOK}),
        "changelog": _LOOK,
    },
    Role.FORENSICS: {
        name: frozenset({"READ", "DESCRIBE"})
        for name in ("events", "verdicts", "dead_letters", "runs", "config", "commands")
    },
}
"""What each role must be allowed on which topic, in the words of Kafka's ACLs."""

GROUP_RIGHTS: Final[Mapping[Role, frozenset[str]]] = {
    Role.WORKER: frozenset({"READ", "DESCRIBE"}),
    Role.OPERATOR: frozenset({"DESCRIBE"}),
}
"""Likewise on the workers' consumer group. Runners and forensics read without a group."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check came to."""

    check: str
    state: State
    detail: str
    do: str = ""
    exit_code: int = EXIT_KAFKA

    def row(self) -> dict[str, Any]:
        """For a table, or as JSON."""
        return {
            "check": self.check,
            "state": self.state.value,
            "detail": self.detail,
            "do": completed(self.do),
        }


NAMES: Final = ("events", "verdicts", "dead_letters", "runs", "changelog", "config", "commands")
"""The topics, as `Topics` calls them."""


@dataclass(slots=True)
class Case:
    """What is examined, and what is known of it so far."""

    settings: Settings
    topics: Topics
    role: Role
    """Whose rights are wanted."""
    described: dict[str, Any] = field(default_factory=dict)
    """Topics by name, as the brokers describe them."""

    def there(self, topic: str) -> bool:
        """Whether a topic exists."""
        described = self.described.get(topic)
        return described is not None and not described["error_code"]

    def plan(self, partitions: int) -> list[TopicPlan]:
        """The topics as they should be."""
        from loopstream.runtime.topics import plan

        return plan(self.settings.prefix, partitions)


def examine(settings: Settings, role: Role) -> Iterator[Finding]:
    """Carry out all checks; those that need what is missing are left out."""
    from loopstream.cli import examine_cluster as of_cluster
    from loopstream.cli import examine_work as of_work
    from loopstream.runtime.topics import Topics

    case = Case(settings, Topics(settings.prefix), role)
    yield from of_cluster.versions()
    try:
        yield from of_cluster.cluster(case)
    except LoopstreamError as error:
        tried = f"{settings.bootstrap}: {error.message}"
        yield Finding("kafka", State.FAIL, tried, error.hint or "", error.exit_code)
        return
    yield from of_cluster.partitions(case)
    if not all(case.there(getattr(case.topics, name)) for name in NAMES):
        return
    yield from _told("topic configuration", of_cluster.configs(case))
    yield from _told("rights", of_cluster.rights(case))
    yield from _told("workers", of_work.workers(case))
    yield from _told("clocks", of_work.clocks(case))
    yield from _told("settings", of_work.settings(case))
    yield from _told("dead letters", of_work.dead_letters(case))


def _told(check: str, findings: Iterator[Finding]) -> Iterator[Finding]:
    """A check that can't be carried out is a finding too; the others go on."""
    try:
        yield from findings
    except LoopstreamError as error:
        yield Finding(check, State.UNKNOWN, error.message, error.hint or "")
