"""What went wrong, as a class: errors that differ in wording and arguments but not in cause."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from loopstream.events.tool import FailureKind
from loopstream.fingerprint.errors import unknown_tool
from loopstream.fingerprint.extended.mask import mask
from loopstream.fingerprint.text import ASCII_NO_CASE


class Failure(NamedTuple):
    """A failed outcome.

    Attributes:
        kind: of what sort.
        code: HTTP status or exit code, where one is told.
        text: the cause, masked; empty where kind and code are the whole class.
        server: the server that the error names.
        unknown_tool: name of a tool that does not exist.
    """

    kind: FailureKind
    code: int | None
    text: str
    server: str | None = None
    unknown_tool: str | None = None


# In this order: the first that matches. The wording of those in _WHOLE does not matter.
_PATTERNS: Final[tuple[tuple[FailureKind, str], ...]] = (
    ("denied", r"denied by|rejected by|not approved|approval (?:denied|refused)|disallowed by"),
    ("rate_limit", r"\b429\b|too many requests|rate.?limit|quota exceeded"),
    (
        "auth",
        (
            r"\b401\b|unauthori[sz]ed|invalid api key|authentication|could not read username"
            r"|credentials|login required|token expired"
        ),
    ),
    (
        "permission",
        (
            r"\b403\b|forbidden|permission denied|no permission|access denied|eacces"
            r"|not permitted|not allowed"
        ),
    ),
    (
        "connection",
        (
            r"connection (?:refused|reset|closed|aborted|error|failed)|econn\w+|unreachable"
            r"|enotfound|getaddrinfo|could not (?:connect|resolve)|broken pipe|not connected"
            r"|failed to connect|server (?:is )?(?:down|offline)|no route to host|disconnected"
        ),
    ),
    ("timeout", r"timed? ?-?out|etimedout|\b(?:408|504)\b|deadline exceeded"),
    (
        "server",
        (
            r"\b(?:500|502|503|529)\b|internal server error|bad gateway|service unavailable"
            r"|overloaded|temporarily unavailable"
        ),
    ),
    (
        "not_found",
        (
            r"\b404\b|not found|no such|does not exist|doesn't exist|enoent|cannot find"
            r"|no (?:results|matches)"
        ),
    ),
    (
        "invalid",
        (
            r"\b(?:400|422)\b|invalid|validation|missing required|requires? an?\b|malformed"
            r"|unexpected (?:argument|keyword|token)|must be|schema|required propert"
        ),
    ),
)
_KINDS: Final = tuple((kind, re.compile(text, ASCII_NO_CASE)) for kind, text in _PATTERNS)
_WHOLE: Final = frozenset(
    {
        "denied",
        "rate_limit",
        "auth",
        "permission",
        "connection",
        "timeout",
        "server",
        # Their texts repeat what was asked for.
        "not_found",
        "invalid",
    }
)
_HTTP: Final = re.compile(r"\b(?:http|status|code|error)\D{0,3}([45]\d\d)\b", ASCII_NO_CASE)
_SERVER: Final = re.compile(r"\bserver ['\"]([\w.-]{1,64})['\"]", ASCII_NO_CASE)
# Beginnings by which a result that is only text says that it is an error.
_SOUNDS_FAILED: Final = re.compile(
    r"(?:\w+ )?(?:error|failed|failure|fatal|traceback|exception|cannot|could not|unable to"
    r"|no such|not found|file not found|permission denied|access denied|no permission"
    r"|unauthori[sz]ed|forbidden|timed out|http [45]\d\d)\b",
    ASCII_NO_CASE,
)
_SHORT: Final = 2_000
_FAILED_STATES: Final = ("failed", "error", "denied", "timeout", "blocked")


def failure_of_text(text: str, code: int | None = None, kind: FailureKind | None = None) -> Failure:
    """The class of an error's text."""
    head = text[:_SHORT]
    missing = unknown_tool(head)
    if missing is not None:
        return Failure("unknown_tool", None, missing, None, missing)
    found = kind or next((k for k, pattern in _KINDS if pattern.search(head)), None)
    http = _HTTP.search(head)
    if code is None and http is not None:
        code = int(http[1])
    named = _SERVER.search(head)
    server = None if named is None else named[1]
    if found in _WHOLE:
        return Failure(found, code, "", server)
    return Failure(found or ("other" if code is None else "exit"), code, mask(head), server)


def failure_of_result(result: object) -> Failure | None:
    """The failure that a result shows in its fields or at its beginning; None if it shows none."""
    if isinstance(result, str):
        return _of_plain(result)
    if not isinstance(result, dict):
        return None
    details = result.get("details")
    fields: dict[str, Any] = details if isinstance(details, dict) else result
    code = _code(fields)
    status = fields.get("status")
    failed = (
        (code is not None and code != 0)
        or status in _FAILED_STATES
        or fields.get("timedOut") is True
        or result.get("isError") is True
        or any(f.get(k) is False for f in (fields, result) for k in ("ok", "success"))
        or bool(fields.get("error"))
    )
    if failed:
        refused = status in ("denied", "blocked")
        text = _text(result, fields)
        return failure_of_text(text, code or None, "denied" if refused else None)
    return _of_plain(_content(result)) if "content" in result else None


def _of_plain(text: str) -> Failure | None:
    return failure_of_text(text) if _SOUNDS_FAILED.match(text.lstrip("[( *\n")) else None


def _code(fields: dict[str, Any]) -> int | None:
    for key in ("exitCode", "exit_code", "returncode"):
        code = fields.get(key)
        if isinstance(code, int) and not isinstance(code, bool):
            return code
    for key in ("statusCode", "status_code", "httpStatus", "status"):
        code = fields.get(key)
        if isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600:
            return code
    return None


def _text(result: dict[str, Any], fields: dict[str, Any]) -> str:
    for key in ("error", "aggregated", "stderr", "message", "reason", "output", "text"):
        for source in (fields, result):
            value = source.get(key)
            if isinstance(value, str) and value.strip():
                return value
            if isinstance(value, dict) and isinstance(value.get("message"), str):
                return str(value["message"])
    return _content(result)


def _content(result: dict[str, Any]) -> str:
    content = result.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (entry.get("text") for entry in content if isinstance(entry, dict))
    return "\n".join(text for text in texts if isinstance(text, str))
