from __future__ import annotations

from pathlib import Path

import pytest

from loopstream.broker import EmbeddedKafka
from loopstream.broker.config import (
    Listener,
    properties_path,
    render_properties,
    server_properties,
    write_files,
)
from loopstream.errors import BrokerError

MAIN = Listener("LOCAL", port=1001)


def test_one_node_with_topics_made_by_hand_only() -> None:
    made = server_properties(Path("/data"), [MAIN], 1002, {})
    assert made["auto.create.topics.enable"] == "false"
    assert made["offsets.topic.replication.factor"] == "1"
    assert made["listeners"] == "LOCAL://127.0.0.1:1001,CONTROLLER://127.0.0.1:1002"
    assert made["advertised.listeners"] == "LOCAL://127.0.0.1:1001"
    assert made["controller.quorum.voters"] == "1@127.0.0.1:1002"
    assert not [name for name in made if "retention" in name]


def test_a_listener_behind_a_proxy_advertises_the_proxy() -> None:
    proxied = Listener("PROXIED", "SASL_SSL", port=1003, advertised_port=1004)
    made = server_properties(Path("/data"), [MAIN, proxied], 1002, {})
    assert "PROXIED://127.0.0.1:1003" in made["listeners"]
    assert made["advertised.listeners"] == "LOCAL://127.0.0.1:1001,PROXIED://127.0.0.1:1004"
    assert "PROXIED:SASL_SSL" in made["listener.security.protocol.map"]


def test_given_listeners_are_added_and_other_properties_replace() -> None:
    extra = {
        "listeners": "MORE://127.0.0.1:1005",
        "listener.security.protocol.map": "MORE:SSL",
        "group.min.session.timeout.ms": "6000",
        "super.users": "User:ANONYMOUS",
    }
    made = server_properties(Path("/data"), [MAIN], 1002, extra)
    assert made["listeners"].startswith("LOCAL://127.0.0.1:1001,")
    assert made["listeners"].endswith(",MORE://127.0.0.1:1005")
    assert made["advertised.listeners"].endswith(",MORE://127.0.0.1:1005")
    assert made["listener.security.protocol.map"].endswith(",MORE:SSL")
    assert made["group.min.session.timeout.ms"] == "6000"
    assert made["super.users"] == "User:ANONYMOUS"


def test_what_makes_it_one_node_cannot_be_set() -> None:
    with pytest.raises(BrokerError, match=r"log\.dirs, node\.id"):
        server_properties(Path("/data"), [MAIN], 1002, {"node.id": "2", "log.dirs": "/x"})


@pytest.mark.parametrize("name", ["LOCAL", "CONTROLLER"])
def test_a_listener_name_of_ours_is_refused(name: str) -> None:
    with pytest.raises(BrokerError, match=f"{name} is taken"):
        EmbeddedKafka(listeners=[Listener(name)])


@pytest.mark.parametrize(
    ("value", "escaped"),
    [
        ("plain", "plain"),
        ("C:\\keys", "C:\\\\keys"),
        ("two\nlines", "two\\nlines"),
        (" led by a space", "\\ led by a space"),
        ("grün 🔑", "gr\\u00fcn \\ud83d\\udd11"),
    ],
)
def test_values_are_escaped_as_java_reads_them(value: str, escaped: str) -> None:
    assert render_properties({"a": value}) == f"a={escaped}\n"


def test_the_properties_file_is_the_owners_alone(tmp_path: Path) -> None:
    write_files(tmp_path, {"ssl.keystore.password": "hush"})
    assert properties_path(tmp_path).stat().st_mode & 0o077 == 0
