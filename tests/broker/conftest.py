"""A Maven repository of two tiny jars, and the lock that fits it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from loopstream.broker.lockfile import Jar, KafkaLock

CONTENTS = {"one": b"the first jar" * 100, "two": b"the second jar" * 200}


def tiny_jar(artifact: str) -> Jar:
    data = CONTENTS[artifact]
    digest = hashlib.sha256(data).hexdigest()
    return Jar("org.example", artifact, "1.0", digest, len(data))


@dataclass
class FakeFetch:
    """Writes the tiny jars, or what a test puts in their place, and remembers its calls."""

    contents: dict[str, bytes] = field(default_factory=lambda: dict(CONTENTS))
    calls: list[list[str]] = field(default_factory=list)

    def __call__(self, jars: Sequence[Jar], folder: Path) -> None:
        self.calls.append([jar.artifact for jar in jars])
        for jar in jars:
            (folder / jar.filename).write_bytes(self.contents[jar.artifact])


@pytest.fixture
def tiny_lock() -> KafkaLock:
    return KafkaLock("9.9.9", (tiny_jar("one"), tiny_jar("two")))


@pytest.fixture
def fake_fetch() -> FakeFetch:
    return FakeFetch()


@pytest.fixture
def repository(tmp_path: Path, tiny_lock: KafkaLock) -> Path:
    root = tmp_path / "remote"
    for jar in tiny_lock.jars:
        path = root / jar.repository_path
        path.parent.mkdir(parents=True)
        path.write_bytes(CONTENTS[jar.artifact])
    return root
