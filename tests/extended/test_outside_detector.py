"""The worked example of docs/how-to/add-a-detector.md, installed by nothing but its entry point."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from loopstream.detect.extended import registry
from loopstream.errors import SettingsError
from loopstream.policy.settings import refuse
from loopstream.scenarios import Player, rising
from tests.extended.variants import step

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "add-a-detector.md"


def block(language: str) -> str:
    match = re.search(rf"```{language}\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert match is not None
    return match[1]


def offer(monkeypatch: pytest.MonkeyPatch, points: list[EntryPoint]) -> None:
    monkeypatch.setattr(registry, "entry_points", lambda **_: EntryPoints(points))
    registry.detectors.cache_clear()


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    (tmp_path / "empty_search.py").write_text(block("python"))
    monkeypatch.syspath_prepend(str(tmp_path))
    project = tomllib.loads(block("toml"))["project"]
    points = project["entry-points"][registry.GROUP]
    offer(monkeypatch, [EntryPoint(n, value, registry.GROUP) for n, value in points.items()])
    yield
    registry.detectors.cache_clear()
    sys.modules.pop("empty_search", None)


def searching(part: dict[str, object]) -> list[tuple[str, str]]:
    player = Player("extended", {"extended": part})
    for lap in range(12):
        for event in step("doc_search", {"id": f"q{lap}"}, "") + step(
            "read", {"path": f"f{lap}"}, f"t{lap}"
        ):
            player.play(event)
    return [(heard.level, heard.detector) for heard in rising(player.verdicts)]


def test_the_example_warns_and_blocks(installed: None) -> None:
    assert searching({}) == [("warn", "empty_search"), ("block", "empty_search")]


def test_it_has_settings_like_any_other(installed: None) -> None:
    assert searching({"detectors": {"empty_search": {"block": 50}}}) == [("warn", "empty_search")]
    assert searching({"detectors": {"empty_search": {"mode": "off"}}}) == []
    wrong = refuse({"extended": {"detectors": {"empty_search": {"lookedat": 3}}}})
    assert wrong is not None
    assert "lookedAt" in wrong


def test_without_it_nothing_is_said_and_its_settings_are_refused() -> None:
    registry.detectors.cache_clear()
    assert searching({}) == []
    assert refuse({"extended": {"detectors": {"empty_search": {}}}}) is not None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cycle", "loopstream.detect.extended.cycle:Cycle"),
        ("nothing", "loopstream.detect.extended.base:Rule"),
        ("missing", "no.such.module:X"),
    ],
)
def test_what_is_no_detector_stops_the_worker(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    offer(monkeypatch, [EntryPoint(name, value, registry.GROUP)])
    with pytest.raises(SettingsError, match=name):
        registry.detectors()
    monkeypatch.undo()
    registry.detectors.cache_clear()
