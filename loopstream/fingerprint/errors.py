"""Errors as outcomes: their text, and the name of a tool that does not exist."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from loopstream.events.text import JS_WHITE_SPACE
from loopstream.fingerprint.numeral import is_number, number_text
from loopstream.fingerprint.text import ASCII_NO_CASE

_NAME: Final = r"([a-z0-9_.-]+)"
_UNKNOWN: Final = re.compile(rf"unknown tool[:{JS_WHITE_SPACE}]+['\"]?{_NAME}", ASCII_NO_CASE)
_NOT_FOUND: Final = re.compile(
    rf"tool[{JS_WHITE_SPACE}]+['\"]?{_NAME}['\"]?[{JS_WHITE_SPACE}]+(?:not found|is not available)",
    ASCII_NO_CASE,
)


def error_text(error: object, encode: Callable[[object], bytes]) -> str:
    """The one text under which an error is hashed and read.

    A string is its own text, untrimmed; numbers and booleans are their plain text, so that 7, 7.0
    and "7" are one error; anything else is its canonical text by ``encode``.
    """
    if isinstance(error, str):
        return error
    if is_number(error):
        return number_text(error)
    return encode(error).decode()


def unknown_tool(text: str) -> str | None:
    """The lower-cased name of the tool that an error says does not exist, if it says so.

    ``unknown tool: frob`` goes before ``tool "frob" not found`` and ``tool frob is not available``,
    wherever in the text they stand. A full stop after the name belongs to it.
    """
    # Searching without regard to case is slow, and nearly no error speaks of tools.
    if "tool" not in text.lower():
        return None
    match = _UNKNOWN.search(text) or _NOT_FOUND.search(text)
    return match[1].lower() if match else None
