"""Wrapped external content: only the nonces of real wrappers are zeroed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopstream.fingerprint.canonical import canonical_bytes
from loopstream.fingerprint.outcomes import fingerprint_outcome
from loopstream.fingerprint.wrapped import unwrapped_bytes, zero_nonces

ZEROS = "0" * 16
NONCE = "abcdef0123456789"
OTHER = "1122334455667788"


def start(nonce: str = NONCE, slashes: int = 0) -> str:
    escape = "\\" * slashes
    return f'<<<EXTERNAL_UNTRUSTED_CONTENT id={escape}"{nonce}{escape}">>>'


def end(nonce: str = NONCE, slashes: int = 0) -> str:
    return start(nonce, slashes).replace("<<<", "<<<END_")


def wrap(body: str, nonce: str = NONCE, slashes: int = 0) -> str:
    return start(nonce, slashes) + body + end(nonce, slashes)


@pytest.mark.parametrize("slashes", range(17))
def test_depths_of_escaping_are_those_of_nested_json(slashes: int) -> None:
    is_wrapper = slashes in (0, 1, 3, 7, 15)
    expected = wrap("body", ZEROS if is_wrapper else NONCE, slashes)
    assert zero_nonces(wrap("body", NONCE, slashes)) == expected


@given(st.sampled_from([0, 1, 3, 7]), st.lists(st.integers(0, 16), max_size=4))
def test_quotes_inside_have_to_be_escaped_as_deep(slashes: int, quotes: list[int]) -> None:
    body = "say " + " ".join("\\" * depth + '"' for depth in quotes)
    is_wrapper = all((depth + 1) % (slashes + 1) == 0 for depth in quotes)
    expected = wrap(body, ZEROS if is_wrapper else NONCE, slashes)
    assert zero_nonces(wrap(body, NONCE, slashes)) == expected


def test_backslashes_without_a_quote_do_not_count() -> None:
    assert zero_nonces(wrap("a \\ b \\\\ c\\", slashes=3)) == wrap("a \\ b \\\\ c\\", ZEROS, 3)


@pytest.mark.parametrize(
    "text",
    [
        start() + "x",
        "x" + end(),
        end() + "x" + start(),
        start() + "x" + end(OTHER),
        start() + "x" + end(OTHER) + "y" + end(),
        start(slashes=1) + "x" + end(slashes=3),
        wrap("x", NONCE.upper()),
        wrap("x", NONCE[1:]),
        wrap("x", NONCE + "0"),
        start().replace(">>>", ">>") + "x" + end(),
        start().replace("<<<", "<<") + "x" + end(),
    ],
)
def test_what_is_no_wrapper_stays(text: str) -> None:
    assert zero_nonces(text) == text


def test_only_an_innermost_wrapper_is_read() -> None:
    assert zero_nonces(wrap(wrap("b", OTHER))) == wrap(wrap("b", ZEROS))
    assert zero_nonces(start() + wrap("b", OTHER)) == start() + wrap("b", ZEROS)


def test_several_wrappers_over_several_lines_are_all_read() -> None:
    body = "1\n2"
    text = f"a {wrap(body)} b <{wrap('', OTHER)}"
    assert zero_nonces(text) == f"a {wrap(body, ZEROS)} b <{wrap('', ZEROS)}"


@given(st.text(), st.text(), st.text())
def test_nothing_but_nonces_changes(before: str, body: str, after: str) -> None:
    text = before + wrap(body) + after
    assert zero_nonces(text) == before + wrap(body, ZEROS) + after


def test_keys_are_ordered_by_their_spelling_and_then_by_themselves() -> None:
    late, early = wrap("k", "f" * 16), wrap("k", "1" * 16)
    between = wrap("k", "5" * 16)[:-1]
    value = {late: 1, between: 2, early: 3}
    zeroed = wrap("k", ZEROS).replace('"', '\\"')
    left = between.replace('"', '\\"')
    expected = f'{{"{zeroed}":3,"{zeroed}":1,"{left}":2}}'
    assert unwrapped_bytes(value).decode() == expected


@given(
    st.recursive(
        st.none() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=10,
    )
)
def test_values_without_wrappers_keep_their_text(value: object) -> None:
    assert unwrapped_bytes(value) == canonical_bytes(value)


@pytest.mark.parametrize("field", ["result", "error"])
def test_only_the_reference_profile_reads_wrappers(field: str) -> None:
    def seen(nonce: str, profile: str) -> str | None:
        outcome: dict[str, Any] = {field: {"details": {"page": [wrap("x", nonce)]}}}
        return fingerprint_outcome("fetch", {}, profile=profile, **outcome).result

    assert seen(NONCE, "reference-2026-9") == seen(OTHER, "reference-2026-9")
    assert seen(NONCE, "documented") != seen(OTHER, "documented")


def test_arguments_are_hashed_with_their_nonces() -> None:
    prints = [
        fingerprint_outcome("fetch", {"u": wrap("x", nonce)}, result=1, profile="reference-2026-9")
        for nonce in (NONCE, OTHER)
    ]
    assert prints[0].args != prints[1].args
    assert prints[0].result == prints[1].result


@pytest.mark.parametrize("body", ["\\" * 200_000, '\\"' * 50_000, "<<<" * 50_000])
def test_a_long_body_is_read_in_passing(body: str) -> None:
    # A search that is quadratic in the text's length would run into the test's time limit.
    assert zero_nonces(wrap(body, slashes=1)) == wrap(body, ZEROS, 1)
    assert zero_nonces(start()[:-4] + body) == start()[:-4] + body
