"""Rules for names and texts that the runner's side and the worker's side must share."""

from __future__ import annotations

import hashlib
from typing import Final

MAX_KEPT_BYTES: Final = 128

# Source: SEMANTICS section 4. Python's own str.strip() is wrong both ways: it also removes
# U+001C..U+001F and U+0085, and leaves U+FEFF.
JS_WHITE_SPACE: Final = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)


def trim(text: str) -> str:
    """Remove leading and trailing white space as JavaScript does."""
    return text.strip(JS_WHITE_SPACE)


def short_name(name: str) -> str:
    """A name as it is kept: above 128 bytes only its digest, so that every row stays bounded.

    Runners and the worker both apply it, so that signatures made of tool names agree.
    """
    encoded = name.encode("utf-8", "surrogatepass")
    if len(encoded) <= MAX_KEPT_BYTES:
        return name
    return "sha256:" + hashlib.sha256(encoded).hexdigest()
