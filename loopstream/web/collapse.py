"""Repeated blocks of a run as one row: a call that is refused and tried again says nothing new.

The topic keeps each of them; this is for those who read along.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from loopstream.events import Action, Verdict
from loopstream.web.ring import Said

SAME: Final = ("scope", "action", "detector", "mode", "tool", "key")
"""What two verdicts must have in common to be one row; only blocks are ever put together."""


class Shown(NamedTuple):
    """A row: its newest verdict, and how many in a row are like it.

    ``same`` names what it may be put together with, within the run; empty: with nothing.
    """

    verdict: Verdict
    partition: int
    offset: int
    times: int
    same: str


def same_of(fields: Iterable[Any]) -> str:
    """Names the values of `SAME`."""
    text = "\0".join(map(str, fields))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def collapsed(newest_first: Iterable[Said], limit: int) -> list[Shown]:
    """Rows of verdicts, the newest first; blocks of one run with no other verdict on it between
    them are one.
    """
    rows: list[Shown] = []
    of_run: dict[str, int] = {}
    for item in newest_first:
        verdict = item.verdict
        same = _same(verdict)
        at = of_run.get(verdict.scope)
        if at is not None and same and rows[at].same == same:
            rows[at] = rows[at]._replace(times=rows[at].times + 1)
            continue
        if len(rows) == limit:
            break
        of_run[verdict.scope] = len(rows)
        rows.append(Shown(verdict, item.partition, item.offset, 1, same))
    return rows


def _same(verdict: Verdict) -> str:
    if verdict.action is not Action.BLOCK:
        return ""
    return same_of(getattr(verdict, name) for name in SAME)


def collapsed_lines(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Verdicts (JSON-like) as they come, for lines that can't be taken back: the first of equal
    blocks at once, the others as one with their number in ``times``, before the run's next verdict,
    at the end, and whenever there are ten times as many.
    """
    held: dict[str, tuple[str, int, int, dict[str, Any]]] = {}
    for row in rows:
        scope = row["scope"]
        same = same_of(map(row.get, SAME)) if row["action"] == Action.BLOCK else ""
        known, times, told, last = held.get(scope, ("", 0, 0, row))
        if same and same == known:
            times += 1
            if times >= 10 * told:
                told = times
                yield row | {"times": times}
            held[scope] = (same, times, told, row)
            continue
        if times > told:
            yield last | {"times": times}
        held[scope] = (same, 1, 1, row)
        yield row
    yield from (last | {"times": times} for _, times, told, last in held.values() if times > told)
