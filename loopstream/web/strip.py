"""A run's story as a page shows it: lanes, streaks, groups, and what the runner did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from loopstream.replay.charts import Line, colour, curves, timeline
from loopstream.replay.origins import chart_marks
from loopstream.replay.story import Entry
from loopstream.web.render import cleaned
from loopstream.web.stories import Happened

_MAX_CURVES: Final = 6
_MAX_TEXT: Final = 600
_OTHERS: Final = ("alternation", "unknown_streak")


@dataclass(frozen=True, slots=True)
class Strip:
    """All that the story's template needs; texts are made safe already."""

    entries: list[Entry]
    hidden: int
    timeline: Markup
    streaks: Markup
    legend: list[dict[str, str]]
    groups: list[dict[str, Any]]
    said: list[Entry]
    settings: list[Entry]
    facts: dict[str, Any]
    notes: list[str]
    seconds: float


def strip_of(happened: Happened) -> Strip:
    """Lay a story out."""
    entries = [cleaned(entry, _MAX_TEXT) for entry in happened.entries]
    lanes = _lanes(entries)
    lines = _lines(entries, lanes)
    return Strip(
        entries=entries,
        hidden=happened.hidden,
        timeline=timeline(entries, lanes),
        streaks=curves(lines, _thresholds(happened), "Streaks as they grew", x_label="events"),
        legend=[{"name": line.name, "colour": line.colour} for line in lines],
        groups=_groups(entries, lanes),
        said=[entry for entry in entries if _is_spoken(entry)],
        settings=cleaned(happened.settings, _MAX_TEXT),
        facts=cleaned(happened.facts, _MAX_TEXT),
        notes=cleaned(happened.notes, _MAX_TEXT),
        seconds=happened.seconds,
    )


def _is_spoken(entry: Entry) -> bool:
    return bool(entry["verdicts"] or "after" in entry or entry["kind"].startswith("operator"))


def _lanes(entries: Sequence[Entry]) -> dict[str, int]:
    lanes: dict[str, int] = {}
    for entry in entries:
        if group := entry.get("group"):
            lanes.setdefault(group, len(lanes))
    return lanes


def _thresholds(happened: Happened) -> dict[str, float]:
    return chart_marks(happened.settings[-1]["settings"]) if happened.settings else {}


def _lines(entries: Sequence[Entry], lanes: Mapping[str, int]) -> list[Line]:
    """The longest streaks, and the counts that belong to no group."""
    points: dict[str, list[tuple[float, float]]] = {}
    for at, entry in enumerate(entries):
        if entry.get("group") is not None:
            points.setdefault(entry["group"], []).append((at, entry["streak"]))
            for name in _OTHERS:
                points.setdefault(name, []).append((at, entry[name]))
    ranked = sorted(points, key=lambda name: -max(y for _, y in points[name]))
    return [
        Line(name.replace("_", " "), colour(lanes.get(name, len(lanes) + at)), points[name])
        for at, name in enumerate(ranked[:_MAX_CURVES])
        if max(y for _, y in points[name]) > 1
    ]


def _groups(entries: Sequence[Entry], lanes: Mapping[str, int]) -> list[dict[str, Any]]:
    """What is known of each group of equal calls, the longest streak first."""
    found: dict[str, dict[str, Any]] = {}
    for entry in entries:
        if (name := entry.get("group")) is None:
            continue
        blank = {"calls": 0, "streak": 0, "results": set(), "preview": entry["preview"]}
        group = found.setdefault(name, blank | {"name": name, "tool": entry["tool"]})
        group["colour"] = colour(lanes[name])
        group["calls"] += entry["kind"] == "tool_call"
        group["streak"] = max(group["streak"], entry["streak"])
        if entry.get("result"):
            group["results"].add(entry["result"])
    return sorted(found.values(), key=lambda group: (-group["streak"], -group["calls"]))[:50]
