from __future__ import annotations

import pytest

from loopstream.config import load
from loopstream.errors import SettingsError
from loopstream.sdk import Runner
from loopstream.wire.connection import address_fault

FAULTS = {
    "localhost": "has no port: give host:port, such as localhost:9092",
    "http://kafka:9092/x": "is a URL; .* such as kafka:9092",
    "kafka:0": "has no port from 1 to 65535",
    "kafka:65536": "has no port from 1 to 65535",
    "kafka:http": "has no port from 1 to 65535",
    "kafka:": "has no port from 1 to 65535",
    "kafka:٩٠٩٢": "has no port from 1 to 65535",
    ":9092": "has no host",
    "kaf ka:9092": "has no host",
    "::1": "has no port",
    "a:9092,,b:9092": "address is empty",
}


@pytest.mark.parametrize("text", FAULTS)
def test_a_faulty_address_is_told_in_words_wherever_it_is_given(text: str) -> None:
    with pytest.raises(SettingsError, match=FAULTS[text]):
        load({"bootstrap": text})
    with pytest.raises(SettingsError, match=FAULTS[text]):
        Runner(text, agent="a")


@pytest.mark.parametrize("text", ["kafka:9092", "[::1]:9092", "10.0.0.1:1", "k-1.x_y:65535"])
def test_an_address_is_taken(text: str) -> None:
    assert address_fault(text) is None
    assert load({"bootstrap": f"{text},{text}"}).settings.bootstrap == f"{text},{text}"


def test_a_misspelt_setting_is_told_the_one_that_may_be_meant() -> None:
    with pytest.raises(SettingsError, match=r"Did you mean worker\.store\?"):
        load({"worker.stroe": "memory"})
