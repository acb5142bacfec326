from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import yaml

from loopstream.cli.examine import Role
from tests.cli.conftest import Cli

USERS = Path(__file__).resolve().parents[2] / "deploy/kubernetes/strimzi/users.yaml"


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
        assert set(row["operations"]) <= {"READ", "WRITE", "DESCRIBE"}
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


@pytest.mark.parametrize("role", list(Role))
def test_they_are_those_of_the_deployment(cli: Cli, role: Role) -> None:
    users = {doc["metadata"]["name"]: doc for doc in yaml.safe_load_all(USERS.read_text())}
    acls = users[f"loopstream-{role}"]["spec"]["authorization"]["acls"]
    granted = {
        (acl["resource"]["type"], acl["resource"]["name"], operation.upper())
        for acl in acls
        for operation in acl["operations"]
    }
    for row in cli("acls", "--role", role, "-o", "ndjson").rows:
        for operation in row["operations"]:
            named = (row["resource"], row["name"], operation)
            wide = (row["resource"], "loopstream.", operation)
            assert named in granted or wide in granted
