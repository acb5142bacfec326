"""Text rules of JavaScript that Python's own string methods answer differently."""

from __future__ import annotations

import re
from typing import Final

# What JavaScript's trim removes. Python's strip takes U+001C..1F and U+0085 too, but no U+FEFF.
JS_SPACE: Final = (
    "\t\n\v\f\r \u00a0\u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)

# With re.ASCII, IGNORECASE folds A-Z alone, so the Kelvin sign is no k and the long s is no s.
ASCII_NO_CASE: Final = re.ASCII | re.IGNORECASE


def js_trim(text: str) -> str:
    """Remove JavaScript's white space from both ends."""
    return text.strip(JS_SPACE)
