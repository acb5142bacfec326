"""Vendored files are what their manifest says; ours ask for nothing that the policy forbids."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from pathlib import Path

import pytest

from loopstream.web.app import _STATIC
from loopstream.web.render import asset, cleaned, shown, static

WEB = Path(__file__).parents[2] / "loopstream" / "web"
VENDOR = WEB / "static" / "vendor"
TEMPLATES = sorted((WEB / "templates").iterdir())
OURS = sorted(path for path in (WEB / "static").iterdir() if path.is_file())


def test_vendored_files_are_those_of_the_manifest() -> None:
    manifest = json.loads((VENDOR / "manifest.json").read_text())
    for name, entry in manifest.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == entry["sha256"], name
        assert len((VENDOR / entry["license_file"]).read_text()) > 500
        assert re.fullmatch(r"\d+\.\d+\.\d+", entry["version"])
    licences = {entry["license_file"] for entry in manifest.values()}
    assert {path.name for path in VENDOR.iterdir()} == {*manifest, *licences, "manifest.json"}


def test_the_tests_own_file_too() -> None:
    folder = Path(__file__).parent / "vendor"
    (entry,) = json.loads((folder / "manifest.json").read_text()).values()
    text = gzip.decompress((folder / "axe.min.js.gz").read_bytes())
    assert hashlib.sha256(text).hexdigest() == entry["sha256"]
    assert "Mozilla Public License" in (folder / entry["license_file"]).read_text()


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_templates_have_no_inline_script_style_or_handler(path: Path) -> None:
    text = path.read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)", text)
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:|hx-on|\| *safe\b", text)
    assert "http://" not in text
    assert "https://" not in text


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_our_files_name_no_other_host(path: Path) -> None:
    text = path.read_text().replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|//[a-z0-9-]+\.|@import|url\(", text)
    assert "eval(" not in text


def test_everything_that_is_served_is_there_and_the_rest_is_not_served() -> None:
    served = {name: static(name) for name in _STATIC}
    assert all(served.values())
    on_disk = {str(path.relative_to(WEB / "static")) for path in (WEB / "static").rglob("*.*")}
    assert {name for name in on_disk if name.endswith((".js", ".css", ".svg"))} == set(served)
    assert asset("app.css").startswith("/static/app.css?v=")


def test_control_characters_are_shown_as_symbols() -> None:
    assert shown("a\x00b\n\x1b[2J\x7f") == "a␀b␊␛[2J␡"
    assert shown("\u202eevil\u2066\ufeff\x85\u2028\u200b") == "�evil�����"
    assert shown("ünïcode 漢字 🙂") == "ünïcode 漢字 🙂"
    assert cleaned({"\x00": ["a\n", 1, None, "x" * 20]}, 10) == {
        "␀": ["a␊", 1, None, "x" * 10 + "…"]
    }
