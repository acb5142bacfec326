from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopstream.broker.lockfile import LOCK_PATH, Jar, parse_lock, read_lock, render_lock
from loopstream.errors import BrokerError

SHA = "ab" * 32
NAMES = st.from_regex(r"[\w.-]{1,20}", fullmatch=True)
JARS = st.builds(
    Jar,
    group=NAMES,
    artifact=NAMES,
    version=NAMES,
    sha256=st.from_regex(r"[0-9a-f]{64}", fullmatch=True),
    size=st.integers(0, 2**40),
)


@pytest.mark.slow
@given(st.lists(JARS, min_size=1, unique_by=lambda jar: jar.filename))
def test_what_is_rendered_parses_to_the_same(jars: list[Jar]) -> None:
    lock = parse_lock(render_lock("4.1.2", jars))
    assert lock.version == "4.1.2"
    assert lock.jars == tuple(jars)


def test_the_committed_lock_is_the_runtime_closure_of_kafka() -> None:
    lock = read_lock()
    artifacts = {jar.artifact: jar for jar in lock.jars}
    assert artifacts["kafka_2.13"].version == lock.version
    assert artifacts["kafka-clients"].version == lock.version
    assert {"scala-library", "zstd-jni", "log4j-core", "log4j-slf4j-impl"} <= artifacts.keys()
    assert render_lock(lock.version, lock.jars) == LOCK_PATH.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("kafka 4", "not a line"),
        (f"{SHA} org.example:one:1.0", "not a line"),
        (f"{SHA[:-1]} 5 org.example:one:1.0", "not a line"),
        (f"{SHA} 5 org.example:../one:1.0", "not a line"),
        (f"{SHA} 5 org.other:one:1.0", "locked twice"),
    ],
)
def test_a_bad_line_is_named(line: str, complaint: str) -> None:
    text = f"kafka 4.1.2\n{SHA} 5 org.example:one:1.0\n{line}\n"
    with pytest.raises(BrokerError, match=complaint) as caught:
        parse_lock(text, name="some.lock")
    assert caught.value.where == "some.lock:3"


@pytest.mark.parametrize("text", ["", "kafka 4.1.2\n", f"{SHA} 5 org.example:one:1.0\n"])
def test_a_lock_without_version_or_jars_is_refused(text: str) -> None:
    with pytest.raises(BrokerError, match="names no Kafka version or no jar"):
        parse_lock(text)


def test_a_missing_or_huge_lock_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BrokerError, match="can't read"):
        read_lock(tmp_path / "none.lock")
    huge = tmp_path / "huge.lock"
    huge.write_bytes(b"#" * 300_000)
    with pytest.raises(BrokerError, match="too large"):
        read_lock(huge)


def test_a_jar_knows_its_place_in_a_repository() -> None:
    jar = Jar("org.example.deep", "one", "1.0", SHA, 5)
    assert jar.repository_path == Path("org/example/deep/one/1.0/one-1.0.jar")
