from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from loopstream.cli.app import app
from tests.docs.pages import ROOT, Page, pages
from tools.docs_links import without_outside_links
from tools.docs_reference import PAGES, parameters, verbs
from tools.docs_texts import REJECTS

OUTSIDE = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"?(https?://[^\s\">]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; any broken link, anchor or forgotten page fails the build."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_it_builds_without_a_broken_link(site: Path) -> None:
    assert len(list(site.rglob("index.html"))) > 15


def test_reading_it_asks_nobody_outside(site: Path) -> None:
    asked = {url for page in site.rglob("*.html") for url in OUTSIDE.findall(page.read_text())}
    assert asked == set()


@pytest.mark.parametrize("name", PAGES)
def test_generated_pages_are_what_the_code_says(name: str) -> None:
    text = (ROOT / "docs/reference" / name).read_text(encoding="utf-8")
    assert text == PAGES[name](), "run `make docs-reference`"


def test_every_reject_code_is_explained() -> None:
    for meaning, todo in REJECTS.values():
        assert meaning.endswith(".")
        assert todo.endswith(".")


OPTIONS = {
    path: {name for names, _, _ in parameters(verb) for name in names} | {"--help", "-h"}
    for path, verb in verbs(app, "loopstream")
}
# Those of the command itself.
GLOBAL = ("--help", "--version", "--debug", "--install-completion", "--show-completion")


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_command_that_is_named_exists(page: Page) -> None:
    for text in page.commands():
        command = text[text.index("loopstream") :].split("|")[0].split("#")[0]
        words = command.split()
        if len(words) > 1 and words[1] in GLOBAL:
            continue
        named = [path for path in OPTIONS if f"{command} ".startswith(f"{path} ")]
        groups = [path for path in OPTIONS if path.startswith(f"{' '.join(words[:2])} ")]
        assert named or (groups and len(words) == 2), f"{page.name}: no such verb: {text}"
        for path in named:
            options = {word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)}
            assert options <= OPTIONS[path], f"{page.name}: no such option: {text}"


def test_links_out_of_the_docs_become_text_if_they_lead_somewhere() -> None:
    page = ROOT / "docs/how-to/some.md"
    text = "[a](../../README.md) [b](../../nowhere.md) [c](../adr/x.md) [d](../../deploy)"
    assert without_outside_links(text, page) == "a [b](../../nowhere.md) [c](../adr/x.md) d"


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_links_beside_the_site_lead_somewhere(name: str) -> None:
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", (ROOT / name).read_text())
    assert [link for link in links if not (ROOT / link).exists()] == []
