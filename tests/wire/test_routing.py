"""Routing equals Kafka's own."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kafka.partitioner.default import DefaultPartitioner
from kafka.partitioner.default import murmur2 as kafka_murmur2

from loopstream.events.text import JS_WHITE_SPACE, trim
from loopstream.wire.routing import murmur2, partition_of, scope_key

LAW = settings(derandomize=True, database=None, deadline=None, max_examples=500)
# kafka-python's stubs leave the functions bare.
THEIRS: Final[Any] = kafka_murmur2
PARTITION: Final[Any] = DefaultPartitioner().partition


class Cluster:
    """As much of a cluster as a partitioner looks at."""

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions

    def topics(self) -> set[str]:
        return {"t"}

    def partitions_for_topic(self, topic: str) -> set[int]:
        return set(range(self._partitions))

    def available_partitions_for_topic(self, topic: str) -> set[int]:
        return self.partitions_for_topic(topic)


@LAW
@given(st.binary(max_size=64))
@example(b"")
@example(b"\xff\xff\xff")
@example(b"\x80" * 5)
def test_murmur2_is_kafkas(data: bytes) -> None:
    assert murmur2(data) == THEIRS(data) & 0xFFFFFFFF


@LAW
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=40), st.integers(1, 64))
@example("", 7)
@example("\U0001f600 Grüße", 7)
@example("\0session", 12)
def test_a_key_goes_where_kafkas_partitioner_sends_it(key: str, partitions: int) -> None:
    data = key.encode()
    theirs = PARTITION("t", key, data, None, None, Cluster(partitions))
    assert partition_of(key, partitions) == theirs


@pytest.mark.parametrize(
    ("run", "session", "scope"),
    [
        ("r1", None, "r1"),
        ("r1", "s", "r1"),
        (" \ufeffr1\u3000", "s", "r1"),
        ("r 1", None, "r 1"),
        ("\x1cr1\x85", None, "\x1cr1\x85"),
        ("", "s", "\0s"),
        (None, "s", "\0s"),
        (JS_WHITE_SPACE, "s", "\0s"),
        (None, "", "\0"),
        (None, " s ", "\0 s "),
        ("", None, None),
        (None, None, None),
        ("\0s", None, None),
        (" \0s", "s", None),
    ],
)
def test_scope_keys(run: str | None, session: str | None, scope: str | None) -> None:
    assert scope_key(run, session) == scope


@LAW
@given(st.text(), st.text())
def test_no_run_passes_for_a_session(run: str, session: str) -> None:
    assert scope_key(run, None) != scope_key(None, session)


@LAW
@given(st.text(alphabet=JS_WHITE_SPACE + "\x1c\x85a"))
def test_trimming_takes_javascripts_white_space_alone(text: str) -> None:
    trimmed = trim(text)
    assert trimmed in text
    assert trimmed == trim(trimmed)
    assert not trimmed or (trimmed[0] not in JS_WHITE_SPACE and trimmed[-1] not in JS_WHITE_SPACE)
    assert set(text.replace(trimmed, "", 1)) <= set(JS_WHITE_SPACE)
