"""The report as people get it: opened from disk in a real browser."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import sync_playwright

from loopstream.replay.report import cleaned, embedded
from tests.cli.conftest import Cli
from tests.replay.files import kcat, pinned
from tests.replay.traffic import Teller, healthy, interleaved, looping

pytestmark = pytest.mark.slow  # a browser for each

CHROMIUM = shutil.which("chromium")
HOSTILE = (
    "</script><script>window.hit=1</script>",
    "<img src=x onerror=window.hit=2>",
    "\"'><svg onload=window.hit=3>",
    "{{ 7 * 7 }}",
    "\x00\x1b[31m\u202eevil\u2028",
)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("NO CHROMIUM ON THE PATH: THE REPORT WAS NOT OPENED IN ANY BROWSER")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Opened:
    """A report in a tab, and everything that went wrong in it."""

    def __init__(self, browser: Any, file: Path, width: int = 1200) -> None:
        self.page = browser.new_page(viewport={"width": width, "height": 800})
        self.troubles: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda m: self.troubles.append(m.text))
        self.page.on("pageerror", lambda e: self.troubles.append(str(e)))
        self.page.on("dialog", lambda d: self.troubles.append(d.message))
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.url = file.as_uri()
        self.page.goto(self.url)

    def close(self) -> None:
        assert self.troubles == []
        assert self.requests == [self.url], "a report reaches no network"
        assert self.page.evaluate("window.hit") is None
        self.page.close()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    runs = [looping("l1", agent="a"), looping("l2", agent="b"), healthy("h1", agent="a")]
    return kcat(tmp_path / "k.jsonl", interleaved(runs), partitions=2, pin=pinned())


def report(cli: Cli, log: Path, *arguments: object) -> Path:
    said = cli("report", *arguments, "--file", log, "--out", log.parent / "r.html")
    assert said.code == 0, said.err
    return log.parent / "r.html"


def test_a_run_can_be_walked_through_with_the_keyboard(cli: Cli, log: Path, chromium: Any) -> None:
    opened = Opened(chromium, report(cli, log, "l1"))
    page = opened.page
    assert page.title() == "Run l1"
    detail = page.locator("#detail")
    assert "WARN generic_repeat 10/10" in detail.inner_text(), "opens at the first verdict"
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "timeline"
    page.keyboard.press("Home")
    assert "#1 run_started" in detail.inner_text()
    page.keyboard.press("ArrowRight")
    assert "#2 tool_call A read" in detail.inner_text()
    page.keyboard.press("End")
    assert "run_ended" in detail.inner_text()
    assert page.locator("#timeline").get_attribute("aria-valuenow") == "66"
    page.locator("button.go").first.focus()
    page.keyboard.press("Enter")
    assert "WARN generic_repeat" in detail.inner_text()
    assert page.locator(".event").count() == 66
    assert page.locator("svg polyline").count() >= 1
    opened.close()


@pytest.mark.parametrize("run", ["l1", None])
def test_a_narrow_screen_does_not_scroll_sideways(
    cli: Cli, log: Path, chromium: Any, run: str | None
) -> None:
    opened = Opened(chromium, report(cli, log, *([run] if run else [])), width=360)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 360
    opened.close()


def test_a_fleet_shows_who_loops_most(cli: Cli, log: Path, chromium: Any) -> None:
    opened = Opened(chromium, report(cli, log))
    text = opened.page.inner_text("main")
    for heading in ("Verdicts over time", "Agents that loop most", "Tools that loop most"):
        assert heading in text
    assert opened.page.locator("svg .bar.block").count() >= 1
    opened.close()


def test_what_strangers_sent_stays_text(cli: Cli, tmp_path: Path, chromium: Any) -> None:
    teller = Teller("r1", agent=HOSTILE[0], runner=HOSTILE[1])
    events = [teller.event("run_started")]
    for text in HOSTILE:
        for _ in range(11):
            events.append(teller.call(text, {"a": text}, preview=text))
            events.append(teller.outcome(text, {"a": text}, text, preview=text))
    log = kcat(tmp_path / "k.jsonl", events, partitions=1, pin=pinned())
    for arguments in (["r1"], []):
        opened = Opened(chromium, report(cli, log, *arguments))
        shown = opened.page.inner_text("main")
        assert "onerror=window.hit=2" in shown
        assert "{{ 7 * 7 }}" in shown
        assert not set("\x00\x1b\u202e\u2028") & set(shown)
        for at in range(len(events) if arguments else 0):
            opened.page.locator("#timeline").press("ArrowRight")
            assert at >= 0
        opened.close()


def test_a_script_block_holds_no_markup() -> None:
    value = {"a": "</script><!--<script>", "b": "&amp;\u2028", "c": [1, None, True]}
    text = str(embedded(value))
    assert not set("<>&") & set(text)
    assert json.loads(text) == value


def test_texts_are_bounded_and_without_controls() -> None:
    text = cleaned({"k\x07": ["x" * 5000, "a\u202eb\ud800"]})
    assert set(text) == {"k\ufffd"}
    assert len(text["k\ufffd"][0]) < 2100
    assert text["k\ufffd"][1] == "a\ufffdb\ufffd"


def test_nothing_in_it_comes_from_elsewhere(cli: Cli, log: Path) -> None:
    for arguments in (["l1"], []):
        html = report(cli, log, *arguments).read_text()
        assert not re.search(r"""(src|href)\s*=\s*["']?(https?:|//)""", html)
        assert "default-src &#39;none&#39;" in html


def test_an_unknown_run_and_a_strange_tuning(cli: Cli, log: Path, tmp_path: Path) -> None:
    assert cli("report", "nobody", "--file", log).code == 2
    strange = tmp_path / "t.json"
    strange.write_text("[]")
    assert cli("report", "--file", log, "--tuned", strange).code == 5
