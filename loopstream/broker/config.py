"""The broker's files: server.properties and the Log4j 2 configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from loopstream.broker.ports import HOST
from loopstream.errors import BrokerError

MAIN_LISTENER = "LOCAL"
CONTROLLER_LISTENER = "CONTROLLER"

# A property given by the caller is appended to ours where ours must stay.
_LISTS = ("listeners", "advertised.listeners", "listener.security.protocol.map")
_RESERVED = ("process.roles", "node.id", "log.dirs", "controller.quorum.voters")

# One node, small, quick to start and to rebalance; retention stays at Kafka's defaults.
_DEFAULTS: Mapping[str, str] = {
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "log.segment.bytes": str(64 * 1024 * 1024),
    "log.index.size.max.bytes": str(1024 * 1024),
    # Kafka's default buffer of 128 MiB would be a third of the heap.
    "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
    "num.network.threads": "2",
    "num.io.threads": "4",
    "background.threads": "2",
    # After kill -9 the new broker is refused until the old one's session has run out: 9 s by
    # default. Both live in one JVM here, so a short session costs nothing.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}

_LOG4J = """\
Configuration:
  status: WARN
  shutdownHook: disable
  Appenders:
    RollingFile:
      name: File
      fileName: "${sys:kafka.logs.dir}/server.log"
      filePattern: "${sys:kafka.logs.dir}/server.log.%i"
      PatternLayout:
        pattern: "[%d] %p %m (%c)%n"
      SizeBasedTriggeringPolicy:
        size: "10 MB"
      DefaultRolloverStrategy:
        max: 3
  Loggers:
    Root:
      level: INFO
      AppenderRef:
        - ref: File
"""


@dataclass(frozen=True, slots=True)
class Listener:
    """One more address of the broker, beside the main one.

    Attributes:
        name: upper-case name, also the prefix of its own settings (``listener.name.<name>.…``).
        protocol: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.
        port: on loopback; 0 lets the OS pick one.
        advertised_port: what clients are told to connect to, if not ``port``: the port of a proxy
            that stands in front.
    """

    name: str
    protocol: str = "PLAINTEXT"
    port: int = 0
    advertised_port: int | None = None


def check_names(listeners: Sequence[Listener]) -> None:
    """Refuse listeners that share a name, or that take the controller's.

    Raises:
        BrokerError: names the listener.
    """
    seen = {CONTROLLER_LISTENER}
    for one in listeners:
        if one.name in seen:
            raise BrokerError(f"the listener name {one.name} is taken.")
        seen.add(one.name)


def server_properties(
    log_dir: Path,
    listeners: Sequence[Listener],
    controller_port: int,
    extra: Mapping[str, str],
) -> dict[str, str]:
    """The effective server.properties.

    Args:
        log_dir: where Kafka keeps its partitions.
        listeners: the main one first; each with its final port.
        controller_port: port of the KRaft controller.
        extra: the caller's properties. Those of listeners are appended to ours, others replace.

    Raises:
        BrokerError: ``extra`` sets what only the embedding may decide.
    """
    if taken := sorted(set(_RESERVED) & extra.keys()):
        raise BrokerError(f"the embedded broker sets {', '.join(taken)} itself.")
    lists = _listener_lists(listeners, controller_port)
    properties = {
        **_DEFAULTS,
        "process.roles": "broker,controller",
        "node.id": "1",
        "log.dirs": str(log_dir),
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        "controller.listener.names": CONTROLLER_LISTENER,
        "inter.broker.listener.name": MAIN_LISTENER,
        **extra,
    }
    for name in _LISTS:
        more = extra.get(name, "")
        if name == "advertised.listeners":
            more = more or extra.get("listeners", "")
        properties[name] = ",".join(filter(None, [lists[name], more]))
    return properties


def render_properties(properties: Mapping[str, str]) -> str:
    """Java's .properties format."""
    return "".join(f"{key}={_escape(value)}\n" for key, value in sorted(properties.items()))


def write_files(folder: Path, properties: Mapping[str, str]) -> None:
    """Write server.properties (which may hold passwords: owner only) and log4j2.yaml."""
    server = properties_path(folder)
    server.touch(mode=0o600)
    server.write_text(render_properties(properties), encoding="ascii")
    log4j_path(folder).write_text(_LOG4J, encoding="utf-8")


def properties_path(folder: Path) -> Path:
    """Where the broker in ``folder`` has its server.properties."""
    return folder / "server.properties"


def log4j_path(folder: Path) -> Path:
    """Where the broker in ``folder`` has its Log4j 2 configuration."""
    return folder / "log4j2.yaml"


def _listener_lists(listeners: Sequence[Listener], controller_port: int) -> dict[str, str]:
    own = [f"{one.name}://{HOST}:{one.port}" for one in listeners]
    told = [f"{one.name}://{HOST}:{one.advertised_port or one.port}" for one in listeners]
    protocols = [f"{one.name}:{one.protocol}" for one in listeners]
    return {
        "listeners": ",".join([*own, f"{CONTROLLER_LISTENER}://{HOST}:{controller_port}"]),
        "advertised.listeners": ",".join(told),
        "listener.security.protocol.map": ",".join(
            [*protocols, f"{CONTROLLER_LISTENER}:PLAINTEXT"]
        ),
    }


def _escape(value: str) -> str:
    text = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    if text.startswith((" ", "\t")):
        text = f"\\{text}"
    # Properties files are Latin-1 to older readers; escapes are understood by all.
    return "".join(c if c.isascii() else _unicode_escape(c) for c in text)


def _unicode_escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
