"""What travels beside the fingerprints: nothing, a preview, or the redacted values themselves."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, Literal

from loopstream.events.tool import MAX_PREVIEW
from loopstream.sdk.values import Json, is_text_oversize, to_json

Capture = Literal["digests", "preview", "full"]
Part = Literal["args", "result", "error"]
Redact = Callable[[str, Part, Any], Any]

CAPTURES: Final = ("digests", "preview", "full")
MASK: Final = "***"
_SECRET: Final = re.compile(
    r"pass(word|wd|phrase)?$|secret|token|api[_-]?key|authorization|cookie|credential|private[_-]?key",
    re.IGNORECASE,
)


def mask_secrets(tool: str, part: Part, value: Any) -> Any:
    """The default redaction: masks the values of keys that sound like secrets.

    It sees names, not contents: a password inside a command line stays. Give a hook of your own
    where that is not enough; it gets (tool, "args" | "result" | "error", a copy of the value as
    JSON types) and returns what may be seen.
    """
    if isinstance(value, dict):
        return {
            key: MASK if _SECRET.search(key) else mask_secrets(tool, part, item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [mask_secrets(tool, part, item) for item in value]
    return value


def redacted(redact: Redact | None, tool: str, part: Part, value: Json) -> Json:
    """The value as it may be seen by others."""
    if redact is None or value.text is None:
        return value
    # A copy: hooks may change what they are given, and agents go on with what they gave.
    return to_json(redact(tool, part, json.loads(value.text)))


def sendable(value: Json) -> str | None:
    """The JSON text that may travel: none if it is over the wire's bounds."""
    if value.text is None or value.oversize:
        return None
    text = value.text
    try:
        text.encode()
    except UnicodeEncodeError:
        # Unpaired surrogates: UTF-8 can't carry them, JSON's escapes can.
        text = json.dumps(value.value)
    return None if is_text_oversize(text) else text


def preview(value: Json) -> str | None:
    """The first characters of the JSON text."""
    if value.text is None:
        return None
    return value.text[:MAX_PREVIEW].encode("utf-8", "replace").decode()
