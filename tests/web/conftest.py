"""A deployment, a dashboard beside it as an operator starts it, and a real browser."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import re
import shutil
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.e2e.house import House, Process, environment, open_house, wait_for

TOKEN: Final = "correct-horse-battery-staple"
AXE: Final = Path(__file__).parent / "vendor" / "axe.min.js.gz"
BLOCKS: Final = {
    "tools": {"loopDetection": {"enabled": True}},
    "agents": {
        "list": [
            {"id": "hasty", "tools": {"loopDetection": {"warningThreshold": 4}}},
            {"id": "new", "tools": {"loopDetection": {"modes": {"generic_repeat": "warn"}}}},
        ]
    },
}


class Dashboard:
    """``loopstream web`` as a process; it can be stopped and started again at its address."""

    def __init__(self, house: House, folder: Path, *options: str, **env: str) -> None:
        self._house = house
        self._folder = folder
        self._options = options
        self._env = env
        self._port = 0
        self._starts = 0
        self.process: Process | None = None
        self.start()

    def start(self) -> None:
        self._starts += 1
        command = [sys.executable, "-m", "loopstream", "web", *self._house.arguments()]
        command += ["--port", str(self._port), *self._options]
        log = self._folder / f"web-{self._starts}.log"
        process = self.process = Process(log, command, environment(**self._env))

        def serves() -> bool:
            assert process.alive, str(process)
            return "http://" in process.said

        wait_for("the dashboard serves", serves)
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", process.said)
        assert found is not None, process.said
        self._port = int(found[1])

    def stop(self) -> None:
        assert self.process is not None
        assert self.process.stop() == 0, str(self.process)
        assert "Traceback" not in self.process.said, self.process.said

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def ask(
        self,
        path: str,
        form: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, str, dict[str, str]]:
        """Status, body and headers of one request, redirects not followed."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        try:
            body = None if form is None else urlencode(form)
            kind = {"Content-Type": "application/x-www-form-urlencoded"}
            given = (headers or {}) | ({} if body is None else kind)
            connection.request("GET" if body is None else "POST", path, body, given)
            answer = connection.getresponse()
            text = answer.read().decode()
            return answer.status, text, {k.lower(): v for k, v in answer.getheaders()}
        finally:
            connection.close()


class Tab:
    """A page in a browser, and everything that went wrong in it."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.url = url
        self.context = context
        self.page: Page = context.new_page()
        self.page.set_default_timeout(60_000)
        self.troubles: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.troubles.append(message.text))
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("dialog", lambda dialog: self.troubles.append(dialog.message))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def goto(self, path: str) -> Page:
        self.page.goto(f"{self.url}{path}")
        return self.page

    def live(self, path: str = "/") -> Page:
        """Open a page and wait until its stream is open."""
        self.goto(path)
        self.page.wait_for_selector("body[data-stream=open]")
        return self.page

    def sign_in(self, back: str = "/") -> None:
        page = self.goto(f"/sign-in?{urlencode({'back': back})}")
        page.get_by_label("Operator's token").fill(TOKEN)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_selector("text=Sign out")

    def axe(self) -> list[str]:
        """What axe finds on the page as it is."""
        # Through the debugger: the page's own policy allows no script of ours, which is right.
        self.page.evaluate(gzip.decompress(AXE.read_bytes()).decode())
        found: dict[str, Any] = self.page.evaluate("async () => await axe.run()")
        return [
            f"{each['id']}: {node['html'][:120]}"
            for each in found["violations"]
            for node in each["nodes"]
        ]

    def clean(self) -> None:
        """No message on the console, and nobody else was asked."""
        assert self.troubles == []
        assert self.page.evaluate("window.hit") is None
        outside = [url for url in self.requests if not url.startswith(f"{self.url}/")]
        assert outside == []


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium")
    if path is None:
        text = "NO CHROMIUM ON THE PATH: THE DASHBOARD WAS NOT OPENED IN ANY BROWSER"
        if os.environ.get("CI"):
            pytest.fail(text)
        pytest.skip(text)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def house(
    request: pytest.FixtureRequest, bootstrap: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[House]:
    prefix, folder = f"w{uuid.uuid4().hex[:10]}", tmp_path_factory.mktemp("house")
    with open_house(bootstrap, prefix, folder, blocks=BLOCKS) as opened:
        yield opened


@pytest.fixture(scope="module")
def dashboard(house: House, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    folder = tmp_path_factory.mktemp("dashboard")
    opened = Dashboard(house, folder, LOOPSTREAM_WEB__TOKEN=TOKEN)
    yield opened
    opened.stop()


@pytest.fixture
def tab(browser: Browser, dashboard: Dashboard) -> Iterator[Tab]:
    context = browser.new_context(viewport={"width": 1280, "height": 860})
    opened = Tab(context, dashboard.url)
    yield opened
    context.close()


def new_run(name: str = "run") -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


def turns(
    house: House,
    run: str,
    count: int,
    *,
    agent: str = "looper",
    tool: str = "exec",
    command: str = "ls",
    result: str = "no such file",
    error: str | None = None,
) -> None:
    """So many calls with the same arguments and outcome, as one frame."""
    now = int(time.time() * 1000)
    base = {"v": 1, "run": run, "agent": agent, "session": "s1", "runner": "r1", "time": now}
    events: list[dict[str, Any]] = []
    args = json.dumps({"command": command})
    said = {"result": json.dumps(result)} if error is None else {"error": json.dumps(error)}
    for _ in range(count):
        call = uuid.uuid4().hex[:12]
        events.append(base | {"type": "tool_call", "tool": tool, "args": args, "call_id": call})
        outcome = {"type": "tool_outcome", "tool": tool, "args": args, "call_id": call}
        events.append(base | outcome | said)
    house.send_frame(events)
