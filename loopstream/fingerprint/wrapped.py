"""External content as the reference wraps it: a start and an end token with one random nonce.

Reading the same page twice gives two nonces, so the reference profile hashes outcomes with the
nonces zeroed. A wrapper inside a JSON string has its quotes escaped, one backslash deep or, encoded
again, three or seven; the text in between has to be escaped at least as deep, else this is no
wrapper at that depth but text that looks like one, and stays as it is.
"""

from __future__ import annotations

import re
from typing import Final

from loopstream.fingerprint.canonical import canonical_bytes, spelled

_MARK: Final = "EXTERNAL_UNTRUSTED_CONTENT id="
_MARK_BYTES: Final = _MARK.encode()
_TOKEN: Final = re.compile(
    rf'<<<(?P<end>END_)?{_MARK}(?P<slashes>\\*)"(?P<nonce>[0-9a-f]{{16}})(?P=slashes)">>>'
)
# The look-behind keeps a long run of backslashes without a quote from being read from each of them.
_QUOTE: Final = re.compile(r'(?<!\\)(\\*)"')
_ZEROS: Final = "0" * 16


def unwrapped_bytes(value: object) -> bytes:
    """The bytes of `canonical`, every string and key in it passed through `zero_nonces`."""
    plain = canonical_bytes(value)
    # No character of the mark is ever escaped, so no string holds it if the text doesn't.
    return spelled(value, zero_nonces) if _MARK_BYTES in plain else plain


def zero_nonces(text: str) -> str:
    """Zero both nonces of every innermost wrapper in a text; linear in its length."""
    if _MARK not in text:
        return text
    spans: list[tuple[int, int]] = []
    start: re.Match[str] | None = None
    for token in _TOKEN.finditer(text):
        if token["end"] and start and _encloses(start, token):
            spans += start.span("nonce"), token.span("nonce")
        start = None if token["end"] else token
    return _zeroed(text, spans)


def _encloses(start: re.Match[str], end: re.Match[str]) -> bool:
    if (start["slashes"], start["nonce"]) != (end["slashes"], end["nonce"]):
        return False
    unit = len(start["slashes"]) + 1
    if unit & (unit - 1):
        return False
    if unit == 1:
        return True
    quotes = _QUOTE.finditer(start.string, start.end(), end.start())
    return all((len(quote[1]) + 1) % unit == 0 for quote in quotes)


def _zeroed(text: str, spans: list[tuple[int, int]]) -> str:
    pieces: list[str] = []
    done = 0
    for begin, end in spans:
        pieces += text[done:begin], _ZEROS
        done = end
    return "".join([*pieces, text[done:]])
