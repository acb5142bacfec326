"""What travels beside the fingerprints: nothing, a preview, or the redacted values themselves."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, Literal

from loopstream.sdk.values import Json, json_text, to_json
from loopstream.wire.limits import MAX_RAW_BYTES

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


def visible(redact: Redact | None, tool: str, part: Part, value: Json) -> str | None:
    """The JSON text of a value as it may be seen by others; None where there is nothing to see.

    Raises:
        Exception: whatever the hook raises.
    """
    text = sendable(value)
    if text is None or redact is None:
        return text
    # A copy: hooks may change what they are given, and agents go on with what they gave.
    return sendable(to_json(redact(tool, part, json.loads(text))))


def sendable(value: Json) -> str | None:
    """The JSON text of a value that may travel; None if there is no value, or it is oversize.

    Raises:
        ValueError: a number that Python refuses to write.
    """
    if not value.given or value.oversize:
        return None
    text = json_text(value)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            # Unpaired surrogates: UTF-8 can't carry them, JSON's escapes can.
            text = json.dumps(json.loads(text), separators=(",", ":"))
    return text if len(text.encode()) <= MAX_RAW_BYTES else None
