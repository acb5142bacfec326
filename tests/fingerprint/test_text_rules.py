"""JavaScript's trim, and the name of an unknown tool in an error's text."""

from __future__ import annotations

import sys

import pytest

from loopstream.events.text import trim
from loopstream.fingerprint.canonical import MISSING
from loopstream.fingerprint.errors import unknown_tool
from loopstream.fingerprint.outcomes import fingerprint_outcome

TRIMMED = {
    *(0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x20, 0xA0, 0x1680),
    *range(0x2000, 0x200B),
    *(0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xFEFF),
}


def test_trim_takes_javascripts_white_space_and_nothing_else() -> None:
    taken = {code for code in range(sys.maxunicode + 1) if not trim(chr(code))}
    assert taken == TRIMMED


def test_trim_leaves_the_inside_alone() -> None:
    assert trim("\ufeff\u00a0 a \u3000 b\x85\u2029") == "a \u3000 b\x85"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Unknown tool: frob", "frob"),
        ("UNKNOWN TOOL:frob", "frob"),
        ("unknown tool frob", "frob"),
        ("unknown tool :\n:\t Frob-2.x_Y!", "frob-2.x_y"),
        ("unknown tool\ufeff'Frob'", "frob"),
        ("unknown tool\u3000frob", "frob"),
        ('error: unknown tool: "frob" (see help)', "frob"),
        ("xunknown tool: frob", "frob"),
        ("Unknown tool: frob.", "frob."),
        ("Unknown tool: ...", "..."),
        ("Unknown tool: fr\u00f6b", "fr"),
        ("unknown tool: ?; unknown tool: frob", "frob"),
        ("tool x not found; unknown tool: y", "y"),
        ("Tool frob not found", "frob"),
        ("tool 'frob' not found", "frob"),
        ('Tool "Frob" is not available', "frob"),
        ("tool \"frob' \n NOT FOUND", "frob"),
        ("mytool\u00a0frob\u2003not found", "frob"),
        ("tools: tool a.b-c_d is not available here", "a.b-c_d"),
        ("tool a b not found, tool c not found", "c"),
    ],
)
def test_an_unknown_tools_name_is_read(text: str, name: str) -> None:
    assert unknown_tool(text) == name


@pytest.mark.parametrize(
    "text",
    [
        "",
        "timeout",
        "unknown tool",
        "unknown tool: ",
        "unknown toolfrob",
        "unknown  tool: frob",
        "unknown\ttool: frob",
        "unknown tool: ''frob",
        "un\u212anown tool: frob",
        "unknown tool: \u017fend",
        "unknown tool\x85frob",
        "unknown tool\x1cfrob",
        "tool frob missing",
        "tool frob  notfound",
        "tool frob not  found",
        "tool: frob not found",
        "tool frob is not ava\u0131lable",
        "tool\x85frob not found",
        "tool frob\x85not found",
        "toolfrob not found",
        "tool 'frob''not found",
    ],
)
def test_other_texts_name_no_unknown_tool(text: str) -> None:
    assert unknown_tool(text) is None


@pytest.mark.parametrize(
    "letter", sorted(set("unknowtlfdisavbe")), ids=lambda letter: f"letter-{letter}"
)
def test_letters_fold_within_ascii_only(letter: str) -> None:
    texts = ("unknown tool: 1", "tool 1 not found", "tool 1 is not available")
    for text in (text for text in texts if letter in text):
        lookalikes = {chr(code) for code in range(0x80, 0x10000) if not 0xD800 <= code < 0xE000}
        folding = [c for c in lookalikes if letter in (c.lower(), c.upper().lower())]
        assert unknown_tool(text.replace(letter, letter.upper())) == "1"
        assert all(unknown_tool(text.replace(letter, c)) is None for c in [*folding, "\u00e9"])


@pytest.mark.parametrize("profile", ["documented", "reference-2026-9"])
def test_an_errors_name_is_read_from_its_text_whatever_the_errors_shape(profile: str) -> None:
    for error in ("unknown tool: A", {"message": "Unknown tool: a"}, ["unknown tool: a"]):
        assert fingerprint_outcome("a", MISSING, error=error, profile=profile).unknown_tool == "a"
    assert fingerprint_outcome("a", {}, error=7, profile=profile).unknown_tool is None


@pytest.mark.parametrize(
    "text", ["unknown tool" + ":" * 200_000, "tool " * 40_000, "tool " + "a" * 200_000]
)
def test_a_long_error_is_read_in_passing(text: str) -> None:
    # A search that is quadratic in the text's length would run into the test's time limit.
    assert unknown_tool(text) is None
