"""Masking what differs from lap to lap without meaning anything.

Times, dates, durations, UUIDs, long hex, random parts of temporary paths, attempt and retry
counters, process ids and long numbers become ``#``. Short integers never do: line ranges, pages
and counters of real progress are made of them. Nor does a long number that says how far
something is (``1048576 bytes``, ``120000/400000``).
"""

from __future__ import annotations

import re
from typing import Final

from loopstream.fingerprint.text import ASCII_NO_CASE

MASK: Final = "#"

_MONTH: Final = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}"
_DAY: Final = r"(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6},? "
_CLOCK: Final = r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d{1,9})?)?"
_ZONE: Final = r"(?: ?(?:z|utc|gmt|am|pm|[+-]\d\d:?\d\d)\b)"
_AMOUNT: Final = (
    r"bytes?|[kmgt]i?b|b|rows?|lines?|records?|items?|files?|tokens?|chars?|characters|entries"
)
_MEASURED: Final = (
    r"bytes|size|length|count|total|offset|rows|lines|progress|processed|received|downloaded"
    r"|uploaded|written|position|page|records|items|tokens"
)
# A match of "keep" stays as it is; of the others the group "word" stays and the rest is masked.
_PATTERN: Final = re.compile(
    "|".join(
        (
            r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
            # How far something is.
            (
                rf"(?P<keep>\b(?:{_MEASURED})[\"']?(?: ?[:=] ?| )\d+"
                rf"|\b\d+ ?(?:{_AMOUNT}|%)(?![\w-])"
                r"|\b\d+(?:/| of )\d+)"
            ),
            rf"\b\d{{4}}[-/]\d\d[-/]\d\d(?:[t _]{_CLOCK}{_ZONE}?)?(?!\d)",
            (
                rf"\b(?:{_DAY})?{_MONTH} +\d{{1,2}}(?:,? \d{{4}})?(?:,? {_CLOCK}{_ZONE}?)?"
                r"(?:,? [a-z]{3,4} \d{4}|,? \d{4})?\b"
            ),
            rf"\b(?:{_DAY})?\d{{1,2}} {_MONTH} \d{{4}}(?:,? {_CLOCK}{_ZONE}?)?\b",
            rf"\b\d{{1,2}}:\d\d:\d\d(?:[.,]\d{{1,9}})?{_ZONE}?",
            rf"\b\d{{1,2}}:\d\d{_ZONE}",
            (
                r"(?P<word>\b(?:attempts?|retry|retries|try|tries)"
                r"(?:[ _-]?(?:after|count|number|no\.?))?\b[\"']?[ #:=]*[\"']?)\d+"
            ),
            r"(?P<pid>\bp?pid[\"']?[ #:=]*)\d+",
            (
                r"(?P<took>\b(?:duration|elapsed|took|latency|uptime)\w*[\"']?(?: ?[:=] ?| )[\"']?)"
                r"\d+(?:\.\d+)?(?: ?(?:ns|us|ms|s|m|h)\b)?"
            ),
            (
                r"\b(?:\d+h ?)?(?:\d+m ?)?\d+(?:\.\d+)?"
                r" ?(?:ns|us|ms|s|secs?|seconds?|mins?|minutes?|hours?|hrs?)\b"
            ),
            r"\b\d+(?:\.\d+)?[mh]\b",
            r"\b0x[0-9a-f]{6,}\b",
            r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,}\b",
            r"\b(?=[a-z]*\d)(?=\d*[a-z])(?=\w*\d\w*\d)[a-z0-9]{20,}\b",
            # Not a part of a decimal fraction, nor of a name.
            r"(?<![\w.])\d{6,}(?:\.\d+)?(?![\w])",
        )
    ),
    ASCII_NO_CASE,
)
_DIGIT: Final = re.compile(r"\d", re.ASCII)

_TEMPORARY: Final = re.compile(
    r"((?:/private)?/(?:var/)?tmp/|/var/folders/|[\\/]Temp[\\/])([^\s\"'`;:,)|&<>]+)",
    re.ASCII,
)
_RANDOM: Final = re.compile(
    r"tmp[._-]?\w{4,}|(?=\w*[a-z])(?=\w*\d\w*[a-z]|\w*\d{3})\w{6,}|.*\.\w{6,}", ASCII_NO_CASE
)


def mask(text: str) -> str:
    """Replace the volatile parts of a text by ``#``; linear in its length."""
    if _DIGIT.search(text) is None:
        return text
    return _PATTERN.sub(_replaced, mask_temporary(text))


def mask_temporary(text: str) -> str:
    """Replace only the random parts of temporary paths; their fixed parts tell files apart."""
    if "mp" not in text and "/var/folders/" not in text:
        return text
    return _TEMPORARY.sub(_without_random, text)


def _replaced(match: re.Match[str]) -> str:
    kind = match.lastgroup
    if kind is None:
        return MASK
    return match[kind] if kind == "keep" else match[kind] + MASK


def _without_random(match: re.Match[str]) -> str:
    parts = re.split(r"([\\/])", match[2])
    last = len(parts) - 1
    return match[1] + "".join(
        MASK if at % 2 == 0 and _is_random(part, is_last=at == last) else part
        for at, part in enumerate(parts)
    )


def _is_random(part: str, *, is_last: bool) -> bool:
    """A folder with a number in it, a name without suffix that ends in one, or random letters."""
    if not part or part == MASK:
        return False
    if _DIGIT.search(part) and (not is_last or "." not in part):
        return True
    stem = part.partition(".")[0] if is_last else part
    return _RANDOM.fullmatch(stem) is not None and part.startswith("tmp")
