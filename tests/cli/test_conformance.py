from __future__ import annotations

import json
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
