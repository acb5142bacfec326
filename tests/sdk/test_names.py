import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopstream.events.base import MAX_ID
from loopstream.sdk.names import bounded_id, printable, tool_name


@pytest.mark.parametrize(
    ("given_name", "known_as"),
    [
        ("exec", "exec"),
        ("  Bash\n", "exec"),
        ("Apply-Patch", "apply_patch"),
        ("apply_patch", "apply_patch"),
        ("READ", "read"),
        ("", "(none)"),
        (" ", "(none)"),
    ],
)
def test_tool_names_are_the_references(given_name: str, known_as: str) -> None:
    assert tool_name(given_name) == known_as


def test_normalising_can_be_turned_off() -> None:
    assert tool_name("Bash", normalize=False) == "Bash"


@given(st.text())
def test_names_fit_the_wire(text: str) -> None:
    assert 1 <= len(tool_name(text * 100).encode()) <= 128
    assert len(bounded_id(text * 100)) <= MAX_ID
    assert tool_name(tool_name(text)) == tool_name(text)


def test_long_ids_stay_apart() -> None:
    assert bounded_id("x" * 200) == bounded_id("x" * 200) != bounded_id("x" * 201)
    assert bounded_id("x" * MAX_ID) == "x" * MAX_ID


def test_what_utf_8_cannot_carry_is_replaced() -> None:
    assert printable("a\ud800b") == "a?b"
