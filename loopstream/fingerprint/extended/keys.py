"""What the name of a field says about its value."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal

Role = Literal["volatile", "given_out", "identity", "place", "measure", "plain"]

# In lower case, without separators.
_VOLATILE: Final = frozenset({
    "timestamp", "ts", "time", "now", "datetime", "clock",
    "pid", "ppid", "attempt", "attempts", "attemptnumber", "retry", "retries", "retrycount",
    "retryafter", "tries", "nonce", "salt", "cachebuster", "receipt",
    "requestid", "reqid", "traceid", "spanid", "correlationid", "idempotencykey", "traceparent",
})  # fmt: skip
# Given out by a result they are new each time; as an argument they say which thing is meant.
_GIVEN_OUT: Final = frozenset({
    "runid", "callid", "toolcallid", "invocationid", "executionid", "messageid", "messageids",
    "platformmessageid", "platformmessageids", "deliveryid", "eventid",
})  # fmt: skip
_VOLATILE_ENDS: Final = ("at", "timestamp", "ms", "millis", "seconds")
_TIMING: Final = ("duration", "elapsed", "latency", "took", "uptime", "walltime", "runtime")
_PLACES: Final = frozenset({
    "path", "file", "filepath", "filename", "targetfile", "absolutepath", "relativepath",
    "notebookpath", "dir", "directory", "folder", "cwd", "src", "dst", "source", "destination",
    "oldpath", "newpath", "url", "uri", "href", "link",
})  # fmt: skip
_IDENTITIES: Final = frozenset({
    "id", "ids", "uuid", "guid", "key", "cursor", "pagetoken", "nexttoken", "continuation",
    "handle", "ref", "sha", "commit", "hash", "number", "name", "email", "phone", "date",
})  # fmt: skip
_MEASURES: Final = (
    "bytes", "size", "length", "count", "total", "offset", "rows", "lines", "progress", "done",
    "completed", "processed", "received", "downloaded", "uploaded", "position", "page", "start",
    "end", "amount", "price", "balance", "value", "tokens", "chars", "limit",
)  # fmt: skip
_SEPARATORS: Final = re.compile(r"[^a-zA-Z0-9]+")
_CAMEL_END: Final = re.compile(r"(?:[a-z0-9]At|_at|-at)$")


@lru_cache(maxsize=4096)
def role_of(key: str) -> Role:
    """Whether a field's value is noise, names a thing, is a place, or measures progress."""
    flat = _SEPARATORS.sub("", key).lower()
    if flat in _VOLATILE or flat.startswith(_TIMING) or _CAMEL_END.search(key):
        return "volatile"
    if flat in _GIVEN_OUT:
        return "given_out"
    if flat in _PLACES:
        return "place"
    if flat in _IDENTITIES or flat.endswith(("id", "uuid", "cursor", "token", "path", "file")):
        return "identity"
    if flat.startswith(_MEASURES) or flat.endswith(_MEASURES):
        return "measure"
    return "volatile" if flat.endswith(_VOLATILE_ENDS[1:]) and flat != "seconds" else "plain"
