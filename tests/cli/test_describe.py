from __future__ import annotations

from loopstream.detect.base import DetectorName
from loopstream.runtime.topics import plan
from tests.cli.conftest import Cli


def test_it_names_topics_table_group_and_detectors(cli: Cli) -> None:
    rows = cli("describe", "--prefix", "acme", "-o", "json").json
    topics = {row["name"]: row["partitions"] for row in rows if row["kind"] == "topic"}
    assert topics == {topic.name: topic.partitions for topic in plan("acme", 4)}
    assert [row["name"] for row in rows if row["kind"] == "group"] == ["acme.worker"]
    detectors = [row["name"] for row in rows if row["kind"] == "detector"]
    assert "ping_pong" in detectors
    assert set(detectors) <= {name.value for name in DetectorName}
    assert all(row["about"] for row in rows)


def test_the_profile_decides_which_detectors(cli: Cli) -> None:
    told = ("-o", "ndjson", "--set", "deployment.profile=reference-2026-9")
    names = {row["name"] for row in cli("describe", *told).rows}
    assert "argument_churn" in names
    assert "argument_churn" not in {row["name"] for row in cli("describe", "-o", "ndjson").rows}


def test_the_chart_has_every_topic_once(cli: Cli) -> None:
    said = cli("describe", "--prefix", "acme", "--mermaid")
    assert said.out.splitlines()[0] == "flowchart LR"
    for topic in plan("acme", 1):
        assert said.out.count(f'"{topic.name}"') == 1


def test_two_forms_at_once_make_no_sense(cli: Cli) -> None:
    said = cli("describe", "--mermaid", "-o", "json")
    assert said.code == 2
    assert "form of its own" in said.err
