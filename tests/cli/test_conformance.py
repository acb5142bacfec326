from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.conftest import SHARED

VECTORS = SHARED / "vectors"
STEP: dict[str, object] = {
    "op": "call",
    "tool": "read",
    "args": {},
    "argsHash": "no such hash",
    "expect": None,
}


@pytest.mark.parametrize(
    ("profile", "file"),
    [
        ("documented", "config.jsonl"),
        ("documented", "documented-directed.jsonl"),
        ("reference-2026-9", "latest-directed.jsonl"),
    ],
)
def test_the_shared_files_agree(cli: Cli, profile: str, file: str) -> None:
    said = cli("conformance", "--profile", profile, VECTORS / file)
    assert said.code == 0
    assert said.out.splitlines()[-1].endswith("mismatches=0")


def test_every_mismatch_is_told_up_to_twenty(cli: Cli) -> None:
    case = {"id": "x-1", "config": None, "steps": [STEP] * 25, "final": {"historyLength": 25}}
    Path("wrong.jsonl").write_text(json.dumps(case))
    said = cli("conformance", "wrong.jsonl")
    lines = said.out.splitlines()
    assert said.code == 1
    assert len(lines) == 21
    assert lines[0].startswith('wrong.jsonl x-1 step 0 argsHash: expected "no such hash", got "')
    assert lines[-1] == "scenarios=1 steps=25 mismatches=25"
    assert said.err == "… and 5 more\n"


def test_what_is_no_vector_file_is_exit_code_5(cli: Cli) -> None:
    Path("bad.jsonl").write_text("{}\nnot json\n")
    assert cli("conformance", "bad.jsonl").code == 5
    assert cli("conformance", "absent.jsonl").code == 5


def test_the_sample_is_of_the_shared_files_and_has_every_detector(cli: Cli) -> None:
    said = cli("conformance", "--sample")
    assert said.code == 0, said.err
    assert said.out.splitlines()[-1].endswith("mismatches=0")
    lines = Path(str(files("loopstream.samples") / "conformance.jsonl")).read_text().splitlines()
    assert set(lines) <= set((VECTORS / "documented-directed.jsonl").read_text().splitlines())
    expected = [step.get("expect") for line in lines for step in json.loads(line)["steps"]]
    assert {answer["detector"] for answer in expected if answer} == {
        "generic_repeat",
        "global_circuit_breaker",
        "known_poll_no_progress",
        "ping_pong",
        "unknown_tool_repeat",
    }


def test_neither_files_nor_sample_is_a_usage_error(cli: Cli) -> None:
    assert cli("conformance").code == 2
    assert cli("conformance", "x.jsonl", "--sample").code == 2
