"""Equal blocks of a run are one row; nothing else is lost, and the newest is shown."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from loopstream.events import Action, Level, Verdict
from loopstream.web.collapse import collapsed, collapsed_lines
from loopstream.web.ring import Said
from tests.replay.traffic import verdict

_KINDS = (Action.BLOCK, Action.BLOCK, Action.RELEASE, Action.WARN)


def said(number: int, run: str, action: Action, key: str) -> Said:
    level = Level.NONE if action is Action.RELEASE else Level.CRITICAL
    made: Verdict = verdict(run, number, action=action, level=level, key=key)
    return Said(made, 0, number, 1, number)


kinds = st.tuples(st.sampled_from("ab"), st.sampled_from(_KINDS), st.sampled_from(["k", "l"]))
many = st.lists(kinds, max_size=60).map(
    lambda found: [said(number, *each) for number, each in enumerate(found, 1)]
)


def runs_of(items: list[Said]) -> list[list[Said]]:
    """Naively: the verdicts of each run, cut where two neighbours differ."""
    groups: list[list[Said]] = []
    for run in dict.fromkeys(item.verdict.scope for item in items):
        last = None
        for item in (each for each in items if each.verdict.scope == run):
            now = (item.verdict.action, item.verdict.key)
            if now == last and item.verdict.action is Action.BLOCK:
                groups[-1].append(item)
            else:
                groups.append([item])
            last = now
    return groups


@given(many)
def test_a_row_counts_what_it_stands_for(items: list[Said]) -> None:
    rows = collapsed(reversed(items), 1_000)
    groups = runs_of(items)
    assert sorted((row.verdict.id, row.times) for row in rows) == sorted(
        (group[-1].verdict.id, len(group)) for group in groups
    )
    assert [row.offset for row in rows] == sorted((row.offset for row in rows), reverse=True)


@given(many)
def test_lines_come_to_the_same(items: list[Said]) -> None:
    lines: list[dict[str, Any]] = list(
        collapsed_lines(item.verdict.model_dump(mode="json") for item in items)
    )
    assert len(lines) <= len(items)
    fresh = [line["id"] for line in lines if "times" not in line]
    groups = runs_of(items)
    assert sorted(fresh) == sorted(group[0].verdict.id for group in groups)
    last = {line["id"]: line["times"] for line in lines if "times" in line}
    for group in groups:
        if len(group) > 1:
            assert last[group[-1].verdict.id] == len(group)


@given(many, st.integers(1, 5))
def test_there_are_no_more_rows_than_asked_for(items: list[Said], limit: int) -> None:
    rows = collapsed(reversed(items), limit)
    assert rows == collapsed(reversed(items), 1_000)[:limit] or len(rows) == limit
