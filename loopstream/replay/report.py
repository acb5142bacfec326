"""One self-contained HTML file: of a run, or of a fleet. Opens from disk, reaches no network.

What strangers sent is text and stays text: everything is escaped by the template engine, control
and direction characters are replaced, data for the script stand in a JSON block in which no tag can
end, and a content security policy allows nothing but the one script of the file.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any, Final

import jinja2
from markupsafe import Markup

from loopstream.replay.charts import Line, bars, colour, curves, legend, timeline
from loopstream.replay.origins import chart_marks
from loopstream.replay.story import Entry

MAX_ENTRIES: Final = 4000
"""Events that a run's report shows; the others are counted."""
_MAX_CURVES: Final = 8
_MAX_TEXT: Final = 2000
_UNSAFE: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
_RESOURCES: Final = files("loopstream.replay") / "templates"


def run_report(
    scope: str, entries: Sequence[Entry], facts: Mapping[str, Any], notes: Sequence[str]
) -> str:
    """The report of one run.

    Args:
        entries: of a `Story`, in order.
        facts: identity and totals, as `Told.identity`.
        notes: what people should know before they trust it.
    """
    shown = [cleaned(entry) for entry in entries[:MAX_ENTRIES]]
    lanes = _lanes(shown)
    return _render(
        "run.html.j2",
        title=f"Run {cleaned(scope)}",
        facts=cleaned(dict(facts)),
        notes=cleaned(list(notes)),
        hidden=max(0, len(entries) - MAX_ENTRIES),
        entries=shown,
        groups=_groups(shown, lanes),
        verdicts=[(entry, verdict) for entry in shown for verdict in entry["verdicts"]],
        settings=[entry for entry in shown if "settings" in entry],
        timeline=timeline(shown, lanes),
        streaks=_streaks(shown, lanes),
        data=embedded(shown),
    )


def fleet_report(
    title: str,
    tables: Mapping[str, Sequence[Mapping[str, Any]]],
    over_time: Sequence[tuple[str, Mapping[str, int]]],
    tuned: Mapping[str, Any] | None,
    notes: Sequence[str],
) -> str:
    """The report of a fleet.

    Args:
        tables: rows by heading.
        over_time: verdicts by action for each stretch of time.
        tuned: outcome of ``loopstream tune``, to be plotted.
    """
    return _render(
        "fleet.html.j2",
        title=cleaned(title),
        tables=cleaned({name: list(rows) for name, rows in tables.items()}),
        over_time=bars(over_time, "Verdicts over time") if over_time else None,
        actions=sorted({action for _, counts in over_time for action in counts}),
        tuned=None if tuned is None else _tuned(cleaned(dict(tuned))),
        notes=cleaned(list(notes)),
        data=embedded([]),
    )


def cleaned(value: Any) -> Any:
    """A JSON-like value whose texts can't steer anything, and are not endless."""
    if isinstance(value, str):
        text = value if len(value) <= _MAX_TEXT else value[:_MAX_TEXT] + "…"
        return _UNSAFE.sub("\ufffd", text)
    if isinstance(value, Mapping):
        return {cleaned(str(name)): cleaned(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [cleaned(each) for each in value]
    return value


def embedded(value: Any) -> Markup:
    """JSON for a script block: with nothing in it that HTML could take for markup."""
    text = json.dumps(value, ensure_ascii=True)
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return Markup(text)  # noqa: S704 - the three characters that HTML knows are escaped above


def _render(template: str, **values: Any) -> str:
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(_resource),
    )
    environment.filters["clock"] = _clock
    environment.filters["moment"] = _moment
    script, style = _resource("report.js"), _resource("report.css")
    return environment.get_template(template).render(
        script=Markup(script),  # noqa: S704 - ours
        style=Markup(style),  # noqa: S704 - ours
        policy=f"default-src 'none'; style-src 'unsafe-inline'; script-src '{_hash(script)}'",
        made=datetime.now(tz=UTC).isoformat(timespec="seconds"),
        **values,
    )


def _resource(name: str) -> str:
    return (_RESOURCES / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _clock(millis: int) -> str:
    return datetime.fromtimestamp(millis / 1000, tz=UTC).strftime("%H:%M:%S.%f")[:-3]


def _moment(millis: int) -> str:
    return datetime.fromtimestamp(millis / 1000, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _lanes(entries: Sequence[Entry]) -> dict[str, int]:
    lanes: dict[str, int] = {}
    for entry in entries:
        if group := entry.get("group"):
            lanes.setdefault(group, len(lanes))
    return lanes


def _groups(entries: Sequence[Entry], lanes: Mapping[str, int]) -> list[dict[str, Any]]:
    """What is known of each group of equal calls, the most repeated first."""
    found: dict[str, dict[str, Any]] = {}
    for entry in entries:
        if (name := entry.get("group")) is None:
            continue
        group = found.setdefault(
            name,
            {"name": name, "tool": entry["tool"], "calls": 0, "results": set(), "streak": 0},
        )
        group["colour"] = colour(lanes[name])
        group["calls"] += entry["kind"] == "tool_call"
        group["streak"] = max(group["streak"], entry["streak"])
        group.setdefault("preview", entry["preview"])
        if entry.get("result"):
            group["results"].add(entry["result"])
    for group in found.values():
        group["results"] = len(group["results"])
    return sorted(found.values(), key=lambda group: (-group["streak"], -group["calls"]))


def _streaks(entries: Sequence[Entry], lanes: Mapping[str, int]) -> dict[str, Any]:
    points: dict[str, list[tuple[float, float]]] = {}
    thresholds: dict[str, float] = {}
    for at, entry in enumerate(entries):
        if "settings" in entry:
            thresholds = chart_marks(entry["settings"])
        if entry.get("group") is not None:
            points.setdefault(entry["group"], []).append((at, entry["streak"]))
            for name in ("alternation", "unknown_streak"):
                points.setdefault(name, []).append((at, entry[name]))
    ranked = sorted(points, key=lambda name: -max(y for _, y in points[name]))[:_MAX_CURVES]
    lines = [
        Line(name.replace("_", " "), colour(lanes.get(name, len(lanes) + at)), points[name])
        for at, name in enumerate(ranked)
        if max(y for _, y in points[name]) > 1
    ]
    plot = curves(lines, thresholds, "Streaks as they grew", x_label="events")
    return {"plot": plot, "legend": legend(lines)}


def _tuned(tuned: Mapping[str, Any]) -> dict[str, Any]:
    """Precision, recall and false stops along the critical threshold, each in its best setting."""
    rows = sorted(tuned["grid"], key=lambda row: row["criticalThreshold"])
    shares = [
        Line(name, shade, [(r["criticalThreshold"], r[name]) for r in rows if r[name] is not None])
        for name, shade in (("precision", colour(1)), ("recall", colour(2)))
    ]
    false = Line(
        "false stops per 1,000 runs",
        colour(0),
        [(row["criticalThreshold"], row["false_stops_per_1000"]) for row in rows],
    )
    return {
        "rows": rows,
        "shares": curves(
            shares, {}, "Precision and recall", x_label="criticalThreshold", y_max=1.05
        ),
        "share_legend": legend(shares),
        "false": curves([false], {}, "False stops per 1,000 runs", x_label="criticalThreshold"),
        "paste": json.dumps(tuned["settings"], indent=2),
    }
