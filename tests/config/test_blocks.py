from __future__ import annotations

import json
from pathlib import Path

import pytest

from loopstream.config import read_blocks
from loopstream.errors import DataError, SettingsError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "agents.json"


AS_PEOPLE_HAVE_IT = """
// everything about our agents
{
  gateway: {port: 18789, "token": "secret"},
  tools: {
    exec: {allow: ["ls"]},
    loopDetection: {enabled: true, "warningThreshold": 8, /* was 10 */ criticalThreshold: 16,},
  },
  agents: {
    defaults: {model: "x"},
    list: [
      {id: "researcher", tools: {loopDetection: {warningThreshold: 4}}},
      {id: "writer"},
      {id: "coder", tools: {exec: {}}},
    ],
  },
}
"""


def test_reads_the_documented_shape_with_comments_and_trailing_commas(file: Path) -> None:
    file.write_text(AS_PEOPLE_HAVE_IT)
    blocks = read_blocks(file).blocks
    assert [(b.key, b.path) for b in blocks] == [
        ("*", "tools.loopDetection"),
        ("researcher", "agents.list[0].tools.loopDetection"),
    ]
    assert json.loads(blocks[0].value) == {
        "enabled": True,
        "warningThreshold": 8,
        "criticalThreshold": 16,
    }


def test_an_agents_block_is_in_force_over_the_global_one(file: Path) -> None:
    file.write_text(AS_PEOPLE_HAVE_IT)
    read = read_blocks(file)
    assert read.in_force(read.blocks[1])["criticalThreshold"] == 16
    assert read.in_force(read.blocks[1])["warningThreshold"] == 4


def test_a_block_by_itself_is_the_global_one(file: Path) -> None:
    file.write_text('{"enabled": true}')
    (block,) = read_blocks(file).blocks
    assert (block.key, block.value) == ("*", b'{"enabled":true}')


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("{}", "holds no loop detection settings", None),
        ('{"tools": {}}', "holds no loop detection settings", None),
        ('{"tools": [], "agents": {"list": {}}}', "holds no loop detection settings", None),
        ("[]", "is no JSON object", None),
        ("", "is not JSON", 1),
        ('{\n"enabled": tru\n}', "is not JSON", 2),
        ("[" * 5000, "is not JSON", 1),
        ('{"tools": {"loopDetection": 3}}', "tools.loopDetection: a settings block is a", None),
        ('{"historySize": 10001}', "historySize is above 10000", None),
        ('{"postCompactionGuard": {"windowSize": 1001}}', "windowSize is above 1000", None),
        ('{"historySize": Infinity}', "holds a number that JSON has no form", None),
        ('{"enabled": "\\ud800"}', "is not JSON", 1),
        ('{"enabled": "' + "x" * 65_536 + '"}', "is over 65536 bytes", None),
        ('{"agents": {"list": [{"tools": {"loopDetection": {}}}]}}', "has no usable id", None),
        (
            '{"agents": {"list": [{"id": "*", "tools": {"loopDetection": {}}}]}}',
            "has no usable id",
            None,
        ),
        (
            (
                '{"agents": {"list": [{"id": "a", "tools": {"loopDetection": {}}},'
                '{"id": "a", "tools": {"loopDetection": {}}}]}}'
            ),
            "are both for agent a",
            None,
        ),
    ],
)
def test_a_wrong_file_is_refused(file: Path, text: str, message: str, line: int | None) -> None:
    file.write_text(text)
    with pytest.raises(SettingsError) as caught:
        read_blocks(file)
    assert message in caught.value.message
    assert caught.value.where == (f"{file}:{line}" if line else str(file))


def test_what_is_no_text_or_not_there_is_refused(file: Path) -> None:
    with pytest.raises(DataError, match=r"can't be read"):
        read_blocks(file)
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SettingsError, match=r"can't be read"):
        read_blocks(file)
    file.write_bytes(b" " * (4 * 1024 * 1024 + 1))
    with pytest.raises(SettingsError, match=r"is over"):
        read_blocks(file)
