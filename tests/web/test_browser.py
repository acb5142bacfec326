"""The dashboard in a real Chromium, beside a real broker and worker."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import time
import uuid
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.house import House, wait_for
from tests.web.conftest import TOKEN, Dashboard, Tab, new_run, turns

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(400)]
expect.set_options(timeout=60_000)

HOSTILE = "<img src=x onerror=window.hit=1>\"'></td>{{ 7 * 7 }}\x1b[31m\u202eevil"
IMAGES = Path(__file__).parents[2] / "docs" / "images"


def rows(page: Page, run: str) -> Any:
    return page.locator("#rows tr").filter(has_text=run)


def told(page: Page) -> None:
    """Wait for a run's story."""
    page.wait_for_selector("#timeline .event")


def test_a_loop_is_seen_as_it_happens(house: House, tab: Tab) -> None:
    page = tab.live()
    expect(page.locator("#state")).to_have_text("Live")
    before = int(page.locator("[data-figure=blocked]").inner_text())
    run = new_run()
    turns(house, run, 20)
    expect(rows(page, run)).to_have_count(2)
    expect(rows(page, run).first).to_contain_text("generic_repeat 20/20")
    expect(rows(page, run).last).to_contain_text("warn")
    expect(page.locator("[data-figure=blocked]")).not_to_have_text(str(before))
    assert int(page.locator("[data-figure=minute]").inner_text()) >= 2
    assert page.locator("#chart canvas").count() == 1
    tab.clean()


def test_the_filter_stands_in_the_address_and_holds_for_what_comes(house: House, tab: Tab) -> None:
    old, new, other = new_run("old"), new_run("new"), new_run("other")
    turns(house, old, 20, agent="picky")
    house.hear(old, 2)
    page = tab.live()
    expect(rows(page, old)).to_have_count(2)
    page.get_by_label("Action").select_option("block")
    page.wait_for_url(re.compile(r"/\?action=block$"))
    page.get_by_label("Agent").fill("picky")
    page.wait_for_url(re.compile(r"/\?agent=picky&action=block$"))
    expect(rows(page, old)).to_have_count(1)
    page.wait_for_selector("body[data-stream=open]")
    expect(page.locator("#state")).to_have_text("Live")
    turns(house, other, 20)
    turns(house, new, 20, agent="picky")
    expect(rows(page, new)).to_have_count(1)
    expect(rows(page, new)).to_contain_text("block")
    assert rows(page, other).count() == 0
    page.reload()
    expect(page.get_by_label("Action")).to_have_value("block")
    expect(rows(page, new)).to_have_count(1)
    assert rows(page, other).count() == 0
    page.get_by_role("link", name="Clear").click()
    expect(rows(page, other)).to_have_count(2)
    assert page.url.endswith("/")
    tab.clean()


def test_nothing_is_missed_while_the_dashboard_is_restarted(
    house: House, dashboard: Dashboard, tab: Tab
) -> None:
    page = tab.live()
    page.evaluate("window.mark = 1")
    before, while_down, after = new_run("before"), new_run("down"), new_run("after")
    turns(house, before, 20)
    expect(rows(page, before)).to_have_count(2)
    dashboard.stop()
    expect(page.locator("#state")).to_contain_text("does not answer")
    turns(house, while_down, 20)
    house.hear(while_down, 2)
    dashboard.start()
    expect(rows(page, while_down)).to_have_count(2)
    expect(page.locator("#state")).to_have_text("Live")
    turns(house, after, 20)
    expect(rows(page, after)).to_have_count(2)
    assert page.evaluate("window.mark") == 1, "the page was not loaded again"
    shown = page.locator("#rows tr").evaluate_all("rows => rows.map(row => row.id.slice(2))")
    assert len(shown) == len(set(shown))
    said = {v.id for run in (before, while_down, after) for v in house.verdicts(run)}
    assert said <= set(shown)
    refused = [text for text in tab.troubles if "ERR_CONNECTION_REFUSED" in text]
    broken = [text for text in tab.troubles if "ERR_INCOMPLETE_CHUNKED_ENCODING" in text]
    # The browser itself tells of the connections that it could not make.
    tab.troubles = [text for text in tab.troubles if text not in {*refused, *broken}]
    tab.clean()


def test_a_run_is_told_event_by_event(house: House, tab: Tab) -> None:
    run = new_run("told")
    turns(house, run, 3, tool="read", result="fine")
    turns(house, run, 21)
    house.hear(run, 3)
    wait_for("it is written down", lambda: house.summaries()[run]["status"] == "blocked")
    page = tab.live()
    page.get_by_role("searchbox", name="Run id").fill(run)
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(rf"/run\?id={run}$"))
    told(page)
    expect(page.locator(".titled .tag")).to_have_text("blocked")
    expect(page.locator("#told")).to_contain_text("block 20")
    expect(page.locator("#told")).to_contain_text("warningThreshold")
    expect(page.locator("#told")).to_contain_text("the partition's pin")
    expect(page.locator("#told ol.said")).to_contain_text("after the block of")
    assert page.locator("#timeline .event").count() == 48
    detail = page.locator("#detail h3")
    page.locator("#timeline").focus()
    page.keyboard.press("Home")
    expect(detail).to_contain_text("#1 tool_call A read")
    page.keyboard.press("ArrowRight")
    expect(detail).to_contain_text("#2 tool_outcome A read")
    page.keyboard.press("End")
    expect(detail).to_contain_text("#48 tool_outcome B exec")
    page.locator("button.go").first.click()
    expect(page.locator("#detail")).to_contain_text("WARN generic_repeat 10/10")
    offset = house.verdicts(run)[0].evidence.offset
    expect(page.locator("#told ol.said")).to_contain_text(f"@{offset}")
    tab.clean()


def test_a_run_s_page_follows_the_run(house: House, tab: Tab) -> None:
    run = new_run("followed")
    turns(house, run, 11)
    house.hear(run, 1)
    page = tab.live(f"/run?id={run}")
    told(page)
    assert page.locator("#timeline .event").count() == 22
    turns(house, run, 9)
    expect(page.locator("#timeline .event")).to_have_count(40)
    expect(page.locator("[aria-labelledby=h-verdicts] tbody tr")).to_have_count(2)
    tab.clean()


def test_a_verdict_has_an_address_that_stays(
    house: House, dashboard: Dashboard, tab: Tab, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = new_run("kept")
    turns(house, run, 20)
    (_, block) = house.hear(run, 2)
    page = tab.live(f"/?{urlencode({'action': 'block'})}")
    rows(page, run).locator("td.time a").click()
    page.wait_for_url(re.compile(rf"/verdict/{block.id}\?at=\d+-\d+$"))
    expect(page.locator("main")).to_contain_text(block.reason)
    expect(page.locator("main")).to_contain_text(block.id)
    expect(page.locator(".positions li").last).to_have_text(
        f"{block.evidence.partition}@{block.evidence.counted[-1]}"
    )
    expect(page.locator("meter")).to_have_attribute("value", "20")
    page.get_by_role("link", name=run).click()
    told(page)
    tab.clean()


def test_settings_are_shown_with_what_they_come_to(tab: Tab) -> None:
    page = tab.goto("/settings")
    everyone = page.locator("[aria-labelledby=h-all]")
    expect(everyone.locator("tr").filter(has_text="warningThreshold")).to_contain_text("10")
    hasty = page.locator("details").filter(has_text="hasty")
    expect(hasty.locator("tr.differs")).to_have_text(re.compile(r"warningThreshold\s*4"))
    expect(page.locator(".facts")).to_contain_text("documented")
    tab.clean()


def test_who_has_not_signed_in_finds_no_way_to_act(house: House, tab: Tab) -> None:
    run = new_run("safe")
    turns(house, run, 20)
    house.hear(run, 2)
    page = tab.live(f"/run?id={run}")
    assert page.locator("main form").count() == 0
    page.get_by_role("link", name="Sign in", exact=True).last.click()
    page.get_by_label("Operator's token").fill("not the token at all")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_have_text("That is not the token.")
    tab.troubles = [text for text in tab.troubles if "401" not in text]
    tab.clean()


def test_an_operator_releases_a_block_and_the_run_goes_on(house: House, tab: Tab) -> None:
    run = new_run("freed")
    turns(house, run, 20)
    house.hear(run, 2)
    wait_for("it is written down", lambda: house.summaries()[run]["status"] == "blocked")
    tab.sign_in(f"/run?id={run}")
    page = tab.live(f"/run?id={run}")
    told(page)
    expect(page.locator(".standing")).to_contain_text("generic_repeat")
    page.get_by_label("Reason").fill("the file is there now")
    page.get_by_label("Your name").fill("Ada <b>")
    page.get_by_role("button", name="Release").click()
    expect(page.locator("#done")).to_contain_text("is written to the command topic")
    verdicts = page.locator("[aria-labelledby=h-verdicts] tbody tr")
    expect(verdicts.first).to_contain_text("release")
    expect(page.locator("#told ol.said")).to_contain_text("By Ada <b>: the file is there now")
    expect(page.locator("#told ol.said li").last).to_contain_text("an operator's release")
    expect(page.locator("[aria-labelledby=h-standing]")).to_contain_text("Nothing")
    assert house.verdicts(run)[-1].action.value == "release"
    page.get_by_role("link", name="Operators").click()
    expect(page.locator("tbody tr").filter(has_text=run)).to_contain_text("Ada <b>")
    tab.clean()


def test_an_operator_aborts_a_run(house: House, tab: Tab) -> None:
    run = new_run("ended")
    turns(house, run, 11)
    house.hear(run, 1)
    tab.sign_in()
    page = tab.live(f"/run?id={run}")
    page.get_by_label("Reason").fill("enough")
    page.get_by_label("Your name").fill("Ada")
    page.get_by_role("button", name="Abort the run").click()
    expect(page.locator(".titled .tag")).to_have_text("aborted")
    verdicts = page.locator("[aria-labelledby=h-verdicts] tbody tr")
    expect(verdicts.first).to_contain_text("By Ada: enough")
    tab.clean()


def test_an_operator_aborts_all_runs_of_an_agent(house: House, tab: Tab) -> None:
    runs = [new_run("herd") for _ in range(5)]
    for run in runs:
        turns(house, run, 2, agent="rogue")
    bystander = new_run("bystander")
    turns(house, bystander, 2, agent="rogue-cousin")
    wait_for("all are written down", lambda: {*runs, bystander} <= house.summaries().keys())
    tab.sign_in()
    page = tab.goto("/runs?agent=rogue")
    page.get_by_text("Abort all runs of rogue (5 live ones are known)").click()
    page.get_by_label("Reason").fill("gone mad")
    page.get_by_label("Your name").fill("Ada")
    page.get_by_label("Yes, abort all of them").check()
    page.get_by_role("button", name="Abort all runs").click()
    expect(page.locator("#done-agent")).to_contain_text("Abort of all runs of rogue")
    for run in runs:
        wait_for("it ends with its next event", partial(ends, house, run))
        assert [v.action.value for v in house.verdicts(run)] == ["abort"]
    turns(house, bystander, 1, agent="rogue-cousin")
    expect(page.locator("#list .tag.aborted")).to_have_count(5)
    assert house.verdicts(bystander) == []
    page = tab.goto(f"/run?{urlencode({'id': runs[0]})}")
    expect(page.locator("[aria-labelledby=h-commands]")).to_contain_text("all of rogue")
    tab.clean()


def ends(house: House, run: str) -> bool:
    turns(house, run, 1, agent="rogue", command=uuid.uuid4().hex)
    return any(verdict.action == "abort" for verdict in house.verdicts(run))


def test_what_strangers_wrote_stays_text(house: House, tab: Tab) -> None:
    run = f"{new_run('evil')} {HOSTILE}"[:120]
    turns(house, run, 20, agent=f"agent {HOSTILE}"[:120], tool=f"tool {HOSTILE}", result=HOSTILE)
    house.hear(run, 2)
    wait_for("it is written down", lambda: run in house.summaries())
    tab.sign_in()
    page = tab.live()
    row = rows(page, run[:13]).first
    expect(row).to_contain_text("<img src=x onerror")
    expect(row).to_contain_text("␛[31m\ufffdevil")
    assert "\x1b" not in page.content()
    assert "\u202e" not in page.content()
    row.locator("td.run a").click()
    told(page)
    expect(page.locator("#told")).to_contain_text("{{ 7 * 7 }}")
    expect(page.locator("h1")).to_contain_text("<img src=x")
    page.get_by_label("Reason").fill(HOSTILE.replace("\x1b", ""))
    page.get_by_label("Your name").fill("Ada")
    page.get_by_role("button", name="Release").click()
    expect(page.locator("#told ol.said li").last).to_contain_text("By Ada: <img")
    assert house.verdicts(run)[-1].action.value == "release"
    for path in (f"/runs?q={quote(run[:13])}", "/operators", f"/run?{urlencode({'id': run})}"):
        tab.goto(path)
        expect(page.locator("main")).to_contain_text("<img src=x")
    tab.clean()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_everyone_can_use_it(
    house: House, dashboard: Dashboard, browser: Browser, scheme: Any, width: int
) -> None:
    run = new_run("axe")
    turns(house, run, 22)
    verdict = house.hear(run, 4)[-1]
    wait_for("it is written down", lambda: run in house.summaries())
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce"
    )
    tab = Tab(context, dashboard.url)
    tab.live()
    found = {"/ signed out": tab.axe()}
    tab.goto("/sign-in")
    found["/sign-in"] = tab.axe()
    tab.sign_in()
    for path in (
        "/",
        "/?agent=nobody",
        "/runs",
        "/runs?agent=looper",
        "/operators",
        "/settings",
        f"/verdict/{verdict.id}",
        f"/run?id={run}",
    ):
        page = tab.goto(path)
        if path.startswith("/run?"):
            told(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert page.evaluate("document.documentElement.dataset.theme") == scheme
        found[path] = tab.axe()
    assert found == {path: [] for path in found}
    tab.clean()
    context.close()


def test_keys_alone_are_enough(house: House, tab: Tab) -> None:
    run = new_run("keys")
    turns(house, run, 20)
    house.hear(run, 2)
    page = tab.live()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("/")
    page.keyboard.type(run)
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(rf"id={run}$"))
    theme = page.evaluate("document.documentElement.dataset.theme")
    page.locator("#theme").focus()
    page.keyboard.press("Enter")
    other = "dark" if theme == "light" else "light"
    assert page.evaluate("document.documentElement.dataset.theme") == other
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == other
    tab.clean()


def test_pausing_holds_the_rows(house: House, tab: Tab) -> None:
    page = tab.live()
    page.get_by_role("button", name="Pause").click()
    run = new_run("paused")
    turns(house, run, 20)
    expect(page.locator("#state")).to_have_text("Paused; there is more")
    assert rows(page, run).count() == 0
    page.get_by_role("button", name="Go on").click()
    expect(rows(page, run)).to_have_count(2)
    tab.clean()


def play_fleet(house: House, dashboard: Dashboard, pace_s: float) -> str:
    """A few agents that loop in a few ways; the run that is to be looked at."""
    named = itertools.count(17)
    last = f"linter-{next(named)}"
    turns(house, last, 2, agent="linter", tool="list_files", result="a.py b.py")
    for _ in range(10):
        turns(house, last, 1, agent="linter", tool="read", command="app.py", result="x = 1")
        turns(house, last, 1, agent="linter", tool="exec", command="lint", result="x is unused")
    for _ in range(3):
        for agent, tool, count, error in (
            ("researcher", "web_search", 12, None),
            ("supporter", "jira_lookup", 11, "Unknown tool: jira_lookup"),
            ("deployer", "exec", 20, None),
        ):
            run = f"{agent}-{next(named)}"
            turns(house, run, 2, agent=agent, tool="list_files", result="a.csv b.csv")
            turns(house, run, count, agent=agent, tool=tool, error=error)
            house.hear(run, 1)
            time.sleep(pace_s)
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    freed = {"run": f"id={run}", "action": "release", "by": "Ada", "reason": "db1 is back"}
    wait_for("it can be released", lambda: dashboard.ask("/command", freed, bearer)[0] == 200)
    house.hear(last, 2)
    wait_for("it is written down", lambda: house.summaries()[last]["status"] == "blocked")
    return last


def test_pictures_for_the_readme(
    house: House, dashboard: Dashboard, browser: Browser, tmp_path: Path
) -> None:
    """Kept with the documentation where SCREENSHOTS is set."""
    last = play_fleet(house, dashboard, pace_s=4.0 if os.environ.get("SCREENSHOTS") else 0.0)
    for scheme in ("light", "dark"):
        context = browser.new_context(
            viewport={"width": 1280, "height": 800},
            color_scheme=scheme,
            device_scale_factor=1.5,
        )
        tab = Tab(context, dashboard.url)
        page = tab.live()
        page.wait_for_timeout(3_000)  # the newest rows are no longer marked
        page.screenshot(path=tmp_path / f"fleet-{scheme}.png")
        tab.sign_in()
        page = tab.live(f"/run?id={last}")
        told(page)
        page.locator("#h-story").evaluate("heading => heading.scrollIntoView()")
        page.evaluate("scrollBy(0, -70)")
        page.screenshot(path=tmp_path / f"run-{scheme}.png")
        tab.clean()
        context.close()
    pictures = sorted(tmp_path.glob("*.png"))
    assert [picture.stat().st_size > 20_000 for picture in pictures] == [True] * 4
    if os.environ.get("SCREENSHOTS"):
        IMAGES.mkdir(parents=True, exist_ok=True)
        for picture in pictures:
            shutil.copy(picture, IMAGES / f"dashboard-{picture.name}")
