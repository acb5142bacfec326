from __future__ import annotations

from dataclasses import dataclass

import pytest

from loopstream.errors import CorruptStateError
from loopstream.partition import Partition, deployment_from_pin, state_from_pin
from loopstream.partition.sources import NoSources
from loopstream.policy.deployment import Deployment


@dataclass(frozen=True)
class _Source:
    offset: int
    key: str
    value: bytes | None


class _Sources:
    def lookup(self, source: str, offset: int) -> _Source | None:
        held = {("config", 2): _Source(2, "*", b'{"enabled":true}')}
        return held.get((source, offset))

    def next_offset(self, source: str) -> int:
        return 3 if source == "config" else 0


def test_a_partition_opened_from_its_pin_is_the_one_that_wrote_it() -> None:
    deployment = Deployment(prefix="p", mode="shadow", idle_ms=5)
    first = Partition(deployment, 4, 8, {}, _Sources())
    pin = first.pin(77)
    again = Partition(deployment_from_pin(pin), 4, 8, {}, NoSources(), state=state_from_pin(4, pin))
    assert deployment_from_pin(pin) == deployment
    assert again.pin(77) == pin
    assert again.pinned
    assert again.last_offset is None
    assert pin.settings == {"*": '{"enabled":true}'}


def test_a_pin_of_another_version_is_refused() -> None:
    pin = Partition(Deployment(prefix="p"), 0, 1, {}, NoSources()).pin(1)
    strange = pin.model_copy(update={"policy": '{"prefix":"p","rules":2}'})
    with pytest.raises(CorruptStateError, match="not understood"):
        deployment_from_pin(strange)
