"""What ``loopstream doctor`` checks of the machine, the cluster and the topics."""

from __future__ import annotations

from collections.abc import Iterator

from loopstream.cli.examine import NAMES, RIGHTS, Case, Finding, State
from loopstream.errors import EXIT_SETTINGS, LoopstreamError

_CREATE = "Create the topics: loopstream topics create"


def versions() -> Iterator[Finding]:
    """What is installed is what the worker's hardening was written for."""
    from importlib.metadata import version

    from loopstream import __version__
    from loopstream.runtime.hardening.upstream import check_upstream

    detail = f"loopstream {__version__}, faust-streaming {version('faust-streaming')}"
    try:
        check_upstream()
    except LoopstreamError as error:
        todo = error.hint or ""
        yield Finding("versions", State.FAIL, error.message, todo, EXIT_SETTINGS)
    else:
        yield Finding("versions", State.OK, detail)


def cluster(case: Case) -> Iterator[Finding]:
    """Kafka answers.

    Raises:
        LoopstreamError: it does not.
    """
    from loopstream.cli import kafka

    wanted = [getattr(case.topics, name) for name in NAMES]
    with kafka.admin(case.settings) as admin:
        brokers = len(admin.describe_cluster()["brokers"])
        case.described = {topic["name"]: topic for topic in admin.describe_topics(wanted)}
    detail = f"{case.settings.bootstrap} answers, brokers: {brokers}"
    if case.settings.security.protocol == "PLAINTEXT" and not _local(case.settings.bootstrap):
        todo = "Set security.protocol: anybody on the way can read and write."
        yield Finding("kafka", State.WARN, f"{detail}, without encryption", todo)
    else:
        yield Finding("kafka", State.OK, detail)


def partitions(case: Case) -> Iterator[Finding]:
    """All topics are there, with partition counts that fit together, and copies in sync."""
    names = [getattr(case.topics, name) for name in NAMES]
    missing = [name for name in names if not case.there(name)]
    if missing:
        yield Finding("topics", State.FAIL, f"missing: {', '.join(missing)}", _CREATE)
        return
    events = len(case.described[case.topics.events]["partitions"])
    wrong = [
        f"{topic.name} has {count}, not {topic.partitions}"
        for topic in case.plan(events)
        if (count := len(case.described[topic.name]["partitions"])) != topic.partitions
    ]
    if wrong:
        todo = "Use another prefix: partition counts can't be changed."
        yield Finding("topics", State.FAIL, "; ".join(wrong), todo)
        return
    yield Finding("topics", State.OK, f"all {len(names)}, {events} partitions")
    yield from _replicas(case, names)


def _replicas(case: Case, names: list[str]) -> Iterator[Finding]:
    partitions = [part for name in names for part in case.described[name]["partitions"]]
    copies = min(len(part["replica_nodes"]) for part in partitions)
    behind = sum(len(part["isr_nodes"]) < len(part["replica_nodes"]) for part in partitions)
    if behind:
        todo = "A broker is down or slow: look at the cluster."
        yield Finding("replicas", State.WARN, f"{behind} partitions lack copies", todo)
    elif copies == 1:
        todo = "Fine to try things out; where a broker may be lost, take 3 and min.insync 2."
        yield Finding("replicas", State.WARN, "one copy of each partition", todo)
    else:
        yield Finding("replicas", State.OK, f"{copies} copies, all in sync")


def configs(case: Case) -> Iterator[Finding]:
    """Topics are configured as `topics create` does it; append time is what must be."""
    from kafka.admin import ConfigResource, ConfigResourceType

    from loopstream.cli import kafka

    plan = case.plan(len(case.described[case.topics.events]["partitions"]))
    asked = [ConfigResource(ConfigResourceType.TOPIC, topic.name) for topic in plan]
    with kafka.admin(case.settings) as admin:
        found = admin.describe_configs(asked, config_filter="all")["topic"]
    if not all(found.get(topic.name) for topic in plan):
        yield Finding("topic configuration", State.UNKNOWN, "this user may not see it")
        return
    differ = [
        f"{topic.name} {key}={has}, not {value}"
        for topic in plan
        for key, value in topic.config.items()
        if (has := found[topic.name][key]["value"]) != value
    ]
    stamped = found[case.topics.events]["message.timestamp.type"]["value"]
    if stamped != "LogAppendTime":
        todo = f"Set message.timestamp.type=LogAppendTime on {case.topics.events}."
        yield Finding("topic configuration", State.FAIL, "; ".join(differ), todo)
    elif differ:
        todo = "Fine if you meant it."
        yield Finding("topic configuration", State.WARN, "; ".join(differ), todo)
    else:
        yield Finding("topic configuration", State.OK, "as topics create makes it")


def rights(case: Case) -> Iterator[Finding]:
    """The asking user may do what its role needs, by the brokers' word."""
    lacking, untold = [], []
    for name, needed in RIGHTS[case.role].items():
        topic = getattr(case.topics, name)
        has = case.described[topic].get("authorized_operations")
        if has is None:
            untold.append(topic)
        elif missing := needed - set(has):
            lacking.append(f"{topic}: {', '.join(sorted(missing))}")
    who = case.settings.security.username or "this user"
    if lacking:
        todo = f"Grant them to {who}; deploy/kubernetes/strimzi/users.yaml lists all."
        yield Finding("rights", State.FAIL, f"{case.role} lacks {'; '.join(lacking)}", todo)
    elif untold:
        yield Finding("rights", State.UNKNOWN, "the brokers do not tell")
    else:
        yield Finding("rights", State.OK, f"all that a {case.role} needs")


def _local(bootstrap: str) -> bool:
    hosts = (server.rpartition(":")[0].strip("[]") for server in bootstrap.split(","))
    return all(host in {"localhost", "127.0.0.1", "::1"} for host in hosts)
