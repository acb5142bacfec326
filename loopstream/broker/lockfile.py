"""The lock file: which jars make up the embedded broker, each by coordinates, size and SHA-256."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from loopstream.errors import BrokerError

LOCK_PATH = Path(__file__).with_name("kafka.lock")

_MAX_LOCK_BYTES = 256 * 1024
_VERSION_LINE = re.compile(r"kafka (\d+\.\d+\.\d+)")
_JAR_LINE = re.compile(r"([0-9a-f]{64})\s+(\d+)\s+([\w.-]+):([\w.-]+):([\w.-]+)")
_HEADER = """\
# Jars of the embedded Apache Kafka broker, in class path order.
# Made by `python -m loopstream.broker.lock`; do not edit by hand.
# sha256, bytes, group:artifact:version
"""


@dataclass(frozen=True, slots=True)
class Jar:
    """One locked jar. ``size`` is in bytes, ``sha256`` is lower-case hex."""

    group: str
    artifact: str
    version: str
    sha256: str
    size: int

    @property
    def coordinates(self) -> str:
        """``group:artifact:version``."""
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def filename(self) -> str:
        """The jar's name in the cache folder and in any Maven repository."""
        return f"{self.artifact}-{self.version}.jar"

    @property
    def repository_path(self) -> Path:
        """Where a Maven repository keeps the jar, relative to its root."""
        return Path(*self.group.split("."), self.artifact, self.version, self.filename)


@dataclass(frozen=True, slots=True)
class KafkaLock:
    """The Kafka version and its jars."""

    version: str
    jars: tuple[Jar, ...]

    @property
    def size(self) -> int:
        """Bytes of all jars."""
        return sum(jar.size for jar in self.jars)


def read_lock(path: Path = LOCK_PATH) -> KafkaLock:
    """Read a lock file.

    Raises:
        BrokerError: the file is missing, too large, or a line can't be read; ``where`` names it.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(_MAX_LOCK_BYTES + 1)
    except OSError as error:
        raise BrokerError(f"can't read the jar lock: {error}", where=str(path)) from error
    if len(data) > _MAX_LOCK_BYTES:
        raise BrokerError("the jar lock is too large", where=str(path))
    return parse_lock(data.decode("utf-8", errors="replace"), name=str(path))


def parse_lock(text: str, *, name: str = "kafka.lock") -> KafkaLock:
    """Parse the text of a lock file; ``name`` is used in errors."""
    version: str | None = None
    jars: dict[str, Jar] = {}
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.split("#", 1)[0].strip()
        if not line:
            continue
        if version is None and (match := _VERSION_LINE.fullmatch(line)):
            version = match[1]
            continue
        jar = _parse_jar(line, where=f"{name}:{number}")
        if jar.filename in jars:
            raise BrokerError(f"{jar.filename} is locked twice.", where=f"{name}:{number}")
        jars[jar.filename] = jar
    if version is None or not jars:
        raise BrokerError("the jar lock names no Kafka version or no jar", where=name)
    return KafkaLock(version, tuple(jars.values()))


def render_lock(version: str, jars: Iterable[Jar]) -> str:
    """The lock file's text; `parse_lock` reads it back to the same value."""
    lines = [f"{jar.sha256} {jar.size:>9} {jar.coordinates}" for jar in jars]
    return "\n".join([f"{_HEADER}\nkafka {version}", *lines]) + "\n"


def _parse_jar(line: str, *, where: str) -> Jar:
    match = _JAR_LINE.fullmatch(line)
    if match is None:
        raise BrokerError(
            "not a line of the jar lock.",
            where=where,
            hint="Make the lock anew with `python -m loopstream.broker.lock`.",
        )
    sha256, size, group, artifact, version = match.groups()
    return Jar(group, artifact, version, sha256, int(size))
