"""The dashboard asked without a browser: who is let in, what every answer carries, slow readers."""

from __future__ import annotations

import html
import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopstream.events import Verdict
from tests.e2e.house import Ear, House, environment, wait_for
from tests.web.conftest import TOKEN, Dashboard, new_run, turns

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

PAGES = ("/", "/runs", "/operators", "/settings", "/sign-in")
SAME = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture(scope="module")
def behind_proxy(house: House, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    folder = tmp_path_factory.mktemp("proxy")
    opened = Dashboard(house, folder, "--user-header", "X-User", LOOPSTREAM_WEB__TOKEN=TOKEN)
    yield opened
    opened.stop()


@pytest.fixture(scope="module")
def cookie(dashboard: Dashboard) -> str:
    status, _, headers = dashboard.ask("/sign-in", {"token": TOKEN, "back": "/runs"}, SAME)
    assert (status, headers["location"]) == (303, "/runs")
    given = headers["set-cookie"]
    assert "HttpOnly" in given
    assert "SameSite=Strict" in given
    return given.split(";")[0]


@pytest.fixture
def blocked(house: House, dashboard: Dashboard) -> str:
    """A run with a standing block, and known to the dashboard."""
    run = new_run("blocked")
    turns(house, run, 20)
    known = f"/runs?q={run}&status=blocked"
    wait_for("the run is known", lambda: f">{run}</a>" in dashboard.ask(known)[1])
    return run


def csrf(dashboard: Dashboard, cookie: str, run: str) -> str:
    text = dashboard.ask(f"/run?id={run}", headers={"Cookie": cookie})[1]
    found = re.search(r'name="csrf" value="([0-9a-f]{64})"', text)
    assert found is not None
    return found[1]


def words(run: str, action: str = "release", **more: str) -> dict[str, str]:
    return {"run": f"id={run}", "action": action, "reason": "it is fine", "by": "Ada"} | more


def commands(house: House) -> int:
    ear = Ear(house.bootstrap, house.topics.commands, partitions=1)
    try:
        ear.catch_up()
        return len(ear.records)
    finally:
        ear.close()


def test_every_answer_carries_the_policy(dashboard: Dashboard) -> None:
    for path in (*PAGES, "/nothing", "/static/app.css", "/livez", "/run?id=x"):
        _, _, headers = dashboard.ask(path)
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';"), path
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        kept = "immutable" if path.startswith("/static") else "no-store"
        assert kept in headers["cache-control"], path


def test_pages_are_there_and_others_are_not(dashboard: Dashboard) -> None:
    for path in PAGES:
        assert dashboard.ask(path)[0] == 200, path
    assert dashboard.ask("/readyz")[:2] == (200, "ready\n")
    for path in ("/static/../app.py", "/static/vendor/manifest.json", "/verdict/xyz"):
        assert dashboard.ask(path)[0] == 404, path
    assert dashboard.ask(f"/verdict/{'0' * 32}")[0] == 404
    assert dashboard.ask(f"/verdict/{'0' * 32}?at=0-99999999")[0] == 404
    assert dashboard.ask(f"/verdict/{'0' * 32}?at=x-y")[0] == 404
    assert dashboard.ask("/run")[0] == 400
    assert dashboard.ask("/run?id=never-heard-of")[0] == 404
    status, text, _ = dashboard.ask("/run/story?id=never-heard-of")
    assert status == 200
    assert "no event of this run" in text


def test_a_stranger_s_page_that_took_a_name_for_us_is_sent_away(dashboard: Dashboard) -> None:
    for headers in ({"Host": "evil.example"}, {"X-Forwarded-For": "10.0.0.1"}):
        status, text, _ = dashboard.ask("/", headers=headers)
        assert status == 403
        assert "this machine alone" in text


def test_no_action_without_a_token(house: House, dashboard: Dashboard, blocked: str) -> None:
    before = commands(house)
    for headers in ({}, SAME, {"Authorization": "Bearer wrong"}, {"Cookie": "loopstream=1.2.3"}):
        assert dashboard.ask("/command", words(blocked), headers)[0] == 403
        form = {"agent": "looper", "sure": "yes", "reason": "r", "by": "b"}
        assert dashboard.ask("/abort-agent", form, headers)[0] == 403
    assert "<form" not in dashboard.ask(f"/run?id={blocked}")[1].partition("<main")[2]
    assert commands(house) == before


def test_no_action_from_another_site_s_form(
    house: House, dashboard: Dashboard, blocked: str, cookie: str
) -> None:
    before, mark = commands(house), csrf(dashboard, cookie, blocked)
    signed = {"Cookie": cookie}
    for headers, form in (
        (signed | {"Sec-Fetch-Site": "cross-site"}, words(blocked, csrf=mark)),
        (signed | {"Sec-Fetch-Site": "same-site"}, words(blocked, csrf=mark)),
        (signed | {"Origin": "http://evil.example"}, words(blocked, csrf=mark)),
        (signed, words(blocked, csrf=mark)),
        (signed | SAME, words(blocked, csrf="0" * 64)),
        (signed | SAME, words(blocked)),
    ):
        assert dashboard.ask("/command", form, headers)[0] == 403
    assert commands(house) == before


def test_an_action_needs_a_reason_a_name_and_a_run(
    house: House, dashboard: Dashboard, blocked: str
) -> None:
    bearer, before = {"Authorization": f"Bearer {TOKEN}"}, commands(house)
    for form, status in (
        (words(blocked, reason=" "), 400),
        (words(blocked, by=""), 400),
        (words(blocked, reason="x" * 501), 400),
        (words(blocked, action="mute"), 400),
        (words("never-heard-of"), 404),
        ({"action": "abort"}, 404),
    ):
        assert dashboard.ask("/command", form, bearer)[0] == status, form
    form = {"agent": "looper", "reason": "r", "by": "b"}
    assert dashboard.ask("/abort-agent", form, bearer)[0] == 400
    assert dashboard.ask("/abort-agent", form | {"agent": "x", "sure": "yes"}, bearer)[0] == 404
    assert commands(house) == before


def test_a_script_releases_with_the_token(house: House, dashboard: Dashboard, blocked: str) -> None:
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    status, text, _ = dashboard.ask("/command", words(blocked), bearer)
    assert status == 200
    assert json.loads(text)["action"] == "release"

    def released() -> bool:
        return house.verdicts(blocked)[-1].action.value == "release"

    wait_for("the worker releases", released)


def test_a_form_without_a_script_works_too(
    house: House, dashboard: Dashboard, blocked: str, cookie: str
) -> None:
    form = words(blocked, action="abort", csrf=csrf(dashboard, cookie, blocked))
    status, text, _ = dashboard.ask("/command", form, SAME | {"Cookie": cookie})
    assert status == 200
    assert f"Abort of {blocked}" in re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", text))
    wait_for("it is aborted", lambda: house.verdicts(blocked)[-1].action.value == "abort")
    ended = house.verdicts(blocked)[-1]
    assert ended.reason == "By Ada: it is fine"
    wait_for("it is known", lambda: dashboard.ask(f"/verdict/{ended.id}")[0] == 200)
    text = bare(dashboard.ask(f"/verdict/{ended.id}")[1])
    assert (
        f"Ordered by Ada Why it is fine Position of the command commands@{ended.evidence.command}"
        in text
    )


def test_modes_are_shown_with_the_settings_and_with_what_they_held_back(
    house: House, dashboard: Dashboard
) -> None:
    run = new_run("rolled-out")
    turns(house, run, 21, agent="new")
    wait_for("it is warned instead", lambda: bool(held_back(house, run)))
    held = held_back(house, run)[0]
    wait_for("it is known", lambda: dashboard.ask(f"/verdict/{held.id}")[0] == 200)
    text = bare(dashboard.ask(f"/verdict/{held.id}")[1])
    assert "Instead of a block: the detector's mode is warn." in text
    assert "Mode warn" in text
    text = bare(dashboard.ask("/settings")[1])
    everyone, _, new = text.partition("acted on for new")
    assert "generic_repeat enforce default" in everyone
    assert "generic_repeat warn agent new" in new
    told = bare(dashboard.ask(f"/run/story?id={run}")[1])
    assert "mode warn: no block" in told
    assert 'modes {"generic_repeat": "warn"}' in told


def held_back(house: House, run: str) -> list[Verdict]:
    return [verdict for verdict in house.verdicts(run) if verdict.instead_of is not None]


def bare(text: str) -> str:
    """A page's words."""
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text)))


def test_the_token_is_guessed_in_vain(dashboard: Dashboard) -> None:
    for token in ("", "wrong", TOKEN[:-1], f"{TOKEN} "):
        status, text, headers = dashboard.ask("/sign-in", {"token": token}, SAME)
        assert status == 401
        assert "not the token" in text
        assert "set-cookie" not in headers
    assert dashboard.ask("/sign-in", {"token": TOKEN}, {"Sec-Fetch-Site": "cross-site"})[0] == 403
    assert dashboard.process is not None
    assert TOKEN[:-1] not in dashboard.process.said


def test_signing_in_leads_nowhere_else(dashboard: Dashboard) -> None:
    for back in ("https://evil.example", "//evil.example", "/\\evil.example", "/\r\nX: y", ""):
        _, _, headers = dashboard.ask("/sign-in", {"token": TOKEN, "back": back}, SAME)
        assert headers["location"] == "/"


def test_behind_a_proxy_only_whom_it_names_may_read(behind_proxy: Dashboard) -> None:
    for path in ("/", "/runs", "/events", "/run?id=x", "/settings"):
        assert behind_proxy.ask(path)[0] == 303, path
    named = {"X-User": "ada@example.org", "Host": "loops.example.org", "X-Forwarded-For": "1.2.3.4"}
    status, text, _ = behind_proxy.ask("/", headers=named)
    assert status == 200
    assert "ada@example.org" in text
    assert behind_proxy.ask("/livez")[0] == 200


def test_behind_a_proxy_acting_takes_the_token_and_the_proxy_s_name(
    house: House, behind_proxy: Dashboard, blocked: str
) -> None:
    named = {"X-User": "ada@example.org"}
    assert behind_proxy.ask("/command", words(blocked), named | SAME)[0] == 403
    known = f"/runs?q={blocked}&status=blocked"
    wait_for("it is known", lambda: f">{blocked}</a>" in behind_proxy.ask(known, headers=named)[1])
    bearer = named | {"Authorization": f"Bearer {TOKEN}"}
    assert behind_proxy.ask("/command", words(blocked, by="somebody else"), bearer)[0] == 200

    def told() -> bool:
        text = behind_proxy.ask("/operators", headers=named)[1]
        row = text.partition(f">{blocked}</a>")[2].partition("</tr>")[0]
        return "<td>ada@example.org</td>" in row and "somebody else" not in row

    wait_for("the audit names whom the proxy named", told)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--host", "0.0.0.0"), "open to anyone"),
        (("--token-file", "nothing"), "can't be read"),
        (("--user-header", "X Y"), "user_header"),
    ],
)
def test_it_refuses_to_start_where_it_would_be_open(
    house: House, tmp_path: Path, options: tuple[str, ...], says: str
) -> None:
    command = [sys.executable, "-m", "loopstream", "web", *house.arguments(), *options]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_broker_it_says_so(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    command = [sys.executable, "-m", "loopstream", "web", "--port", "0"]
    command += ["--bootstrap", f"127.0.0.1:{port}", "--set", "timeout_s=2"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 4, done.stderr
    assert "does not answer" in done.stderr


def test_a_reader_that_takes_nothing_slows_nobody(house: House, dashboard: Dashboard) -> None:
    """Its stream stands still; the pages, and whoever else listens, go on."""
    host, port = dashboard.url.removeprefix("http://").split(":")
    lazy = []
    for _ in range(20):
        link = socket.create_connection((host, int(port)))
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        link.sendall(f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        lazy.append(link)
    try:
        run = new_run("many")
        # Each further critical call that arrives all the same is a verdict of its own.
        for _ in range(10):
            turns(house, run, 200)
        house.settle()
        assert len(house.verdicts(run)) > 1000
        last = house.verdicts(run)[-1].id
        wait_for("the pages have them", lambda: f"v-{last}" in dashboard.ask("/")[1])
        with socket.create_connection((host, int(port))) as link:
            link.settimeout(60)
            path = f"/events?id={run}&after=0.0.0"
            link.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
            heard = b""
            while b"event: resync" not in heard:
                heard += link.recv(65536)
    finally:
        for link in lazy:
            link.close()


def test_settings_say_what_the_deployment_s_records_say(
    house: House, blocked: str, tmp_path: Path
) -> None:
    """Not what this process happens to be told."""
    misled = Dashboard(
        house,
        tmp_path,
        LOOPSTREAM_DEPLOYMENT__PROFILE="extended",
        LOOPSTREAM_DEPLOYMENT__MODE="shadow",
        LOOPSTREAM_DEPLOYMENT__IDLE_S="120",
    )
    try:
        known = f"/runs?q={blocked}"
        wait_for("runs are known", lambda: f">{blocked}</a>" in misled.ask(known)[1])
        text = bare(misled.ask("/settings")[1])
        assert "Profile documented the newest run's record" in text
        assert "Mode enforce the newest run's record" in text
        assert re.search(r"Forgets a silent run after 1440 min the pin at events \d@\d", text)
        assert "resolved for profile documented." in text
        assert "warningThreshold 10" in text
        assert "blocked shadow" not in bare(misled.ask(known)[1])
    finally:
        misled.stop()


def test_refused_calls_that_are_tried_again_are_one_row(
    house: House, dashboard: Dashboard, blocked: str
) -> None:
    turns(house, blocked, 6)
    times = re.compile(r'data-times="(\d+)"')

    def rows(page: str) -> list[int]:
        text = dashboard.ask(page)[1]
        found = [row for row in text.split("<tr id=") if f'data-run="{blocked}"' in row]
        shown = [times.search(row) for row in found if 'class="block"' in row]
        return [int(match[1]) for match in shown if match]

    def all_told() -> bool:
        house.settle()
        blocks = len([v for v in house.verdicts(blocked) if v.action.value == "block"])
        return blocks > 5 and sum(rows(f"/run?id={blocked}")) == blocks

    wait_for("each is counted", all_told, 30)
    assert len(rows(f"/run?id={blocked}")) <= 2
    assert rows("/?detector=generic_repeat") == rows(f"/run?id={blocked}")


def test_a_run_is_named_as_an_address_does(dashboard: Dashboard) -> None:
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    status, text, _ = dashboard.ask("/command", words("x") | {"run": "hand-run"}, bearer)
    assert (status, "run=id=RUN" in text) == (404, True)
    assert "No worker knows the run never." in dashboard.ask("/command", words("never"), bearer)[1]


def test_signing_in_leads_back_to_the_page(dashboard: Dashboard) -> None:
    for path in ("/", "/runs?status=blocked&agent=a%26b", "/run?id=x%26y"):
        header = dashboard.ask(path)[1].partition("<main")[0]
        found = re.search(r'href="(/sign-in\?back=[^"]*)"', header)
        assert found is not None
        form = dashboard.ask(html.unescape(found[1]))[1]
        back = re.search(r'name="back" value="([^"]*)"', form)
        assert back is not None
        assert html.unescape(back[1]) == path
