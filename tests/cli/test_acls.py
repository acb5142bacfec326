from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from loopstream.cli.examine import Role
from tests.cli.conftest import Cli

ROOT = Path(__file__).resolve().parents[2]
USERS = ROOT / "deploy/kubernetes/strimzi/users.yaml"
GUIDE = ROOT / "docs/how-to/secure-it.md"
WORDS = {
    "loopstream.dead-letters": "dead letters",
    "loopstream.worker-runs-changelog": "changelog",
}


def test_a_runner_writes_events_and_reads_verdicts_and_that_is_all(cli: Cli) -> None:
    said = cli("acls", "--role", "runner", "--prefix", "acme", "-o", "ndjson")
    assert said.code == 0, said.err
    assert {(row["resource"], row["name"]): row["operations"] for row in said.rows} == {
        ("topic", "acme.events"): ["DESCRIBE", "WRITE"],
        ("topic", "acme.verdicts"): ["DESCRIBE", "READ"],
    }


def test_nobody_gets_more_than_topics_and_the_group_of_the_prefix(cli: Cli) -> None:
    rows = cli("acls", "--prefix", "acme", "-o", "ndjson").rows
    assert {row["role"] for row in rows} == set(Role)
    for row in rows:
        assert row["name"].startswith("acme.")
        assert set(row["operations"]) <= {"READ", "WRITE", "DESCRIBE", "DESCRIBE_CONFIGS"}
        assert row["principal"] == f"User:acme-{row['role']}"
        assert row["role"] != "forensics" or "WRITE" not in row["operations"]


def test_as_commands(cli: Cli) -> None:
    words = ("--role", "operator", "--principal", "User:jane doe", "--commands")
    said = cli("acls", *words, "--bootstrap", "kafka:9093")
    lines = [shlex.split(line) for line in said.out.splitlines()]
    for line in lines:
        assert line[:4] == ["kafka-acls.sh", "--bootstrap-server", "kafka:9093", "--add"]
        assert line[line.index("--allow-principal") + 1] == "User:jane doe"
    assert lines[-1][-2:] == ["--group", "loopstream.worker"]


def test_commands_are_no_json(cli: Cli) -> None:
    assert cli("acls", "--commands", "-o", "json").code == 2


Rights = set[tuple[str, str, str]]


def printed(cli: Cli, role: Role) -> Rights:
    rows = cli("acls", "--role", role, "-o", "ndjson").rows
    return {
        (row["resource"], row["name"], o.replace("_", ""))
        for row in rows
        for o in row["operations"]
    }


@pytest.mark.parametrize("role", list(Role))
def test_they_are_those_of_the_deployment(cli: Cli, role: Role) -> None:
    users = {doc["metadata"]["name"]: doc for doc in yaml.safe_load_all(USERS.read_text())}
    acls = users[f"loopstream-{role}"]["spec"]["authorization"]["acls"]
    assert {acl["resource"]["patternType"] for acl in acls} == {"literal"}
    assert printed(cli, role) == {
        (acl["resource"]["type"], acl["resource"]["name"], operation.upper())
        for acl in acls
        for operation in acl["operations"]
    }


@pytest.mark.parametrize("role", list(Role))
def test_they_are_those_of_the_documentation(cli: Cli, role: Role) -> None:
    row = re.search(rf"^\| {role}s? \| (.+) \| (.+) \|$", GUIDE.read_text(), re.MULTILINE)
    assert row is not None
    told = {
        (operation, re.sub(r" \(.*\)", "", name))
        for operation, cell in zip(("WRITE", "READ"), row.groups(), strict=True)
        for name in cell.split(", ")
        if name != "nothing"
    }
    topics = {
        (operation, WORDS.get(name, name.removeprefix("loopstream.")))
        for kind, name, operation in printed(cli, role)
        if kind == "topic" and operation in {"READ", "WRITE"}
    }
    assert topics == told


def test_a_table_names_operations_in_words(cli: Cli) -> None:
    said = cli("acls", "--role", "operator")
    assert "Describe, DescribeConfigs, Read, Write" in said.out
    assert "[" not in said.out
