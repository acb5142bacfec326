"""Names that a runner gives: tools as the reference spells them, ids within the wire's bounds."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Final

from loopstream.events.base import MAX_ID
from loopstream.events.text import short_name, trim

_ALIASES: Final = {"bash": "exec", "apply-patch": "apply_patch"}
_NAMELESS: Final = "(none)"


def tool_name(name: str, normalize: bool = True) -> str:
    """The name under which a tool is known.

    Args:
        name: as the model spelled it.
        normalize: trim it, lower its case, and map ``bash`` to ``exec`` and ``apply-patch`` to
            ``apply_patch``, as the reference's runner does.
    """
    return _known_name(name, normalize) if len(name) <= MAX_ID else _tool_name(name, normalize)


def _tool_name(name: str, normalize: bool) -> str:
    if normalize:
        name = trim(name).lower()
        name = _ALIASES.get(name, name)
    return short_name(printable(name)) or _NAMELESS


# Agents have few tools, and models make up few names.
_known_name = lru_cache(maxsize=1024)(_tool_name)


def bounded_id(text: str) -> str:
    """An id that fits the wire: too long a one becomes its digest, always the same."""
    text = printable(text)
    if len(text) <= MAX_ID:
        return text
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def printable(text: str) -> str:
    """The text without unpaired surrogates, which UTF-8 can't carry."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
