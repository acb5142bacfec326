"""Plots as SVG text: made here, so that a report needs no library and no network."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup, escape

_GOLDEN: Final = 137.508
_LEFT: Final = 44
_BOTTOM: Final = 26
_TOP: Final = 10
_MARKS: Final = {"warn": "▲", "block": "■", "abort": "✖", "release": "○", "answer": "◆"}

_SQUARE: Final = Markup('<rect class="{}" x="{}" y="{}" width="11" height="13" rx="2" fill="{}"/>')
_DOT: Final = Markup('<circle class="{}" cx="{}" cy="{}" r="4" fill="{}"/>')

Point = tuple[float, float]


def colour(index: int) -> str:
    """A colour for the n-th group, far from its neighbours'."""
    return f"hsl({index * _GOLDEN % 360:.0f} 62% 52%)"


@dataclass(frozen=True, slots=True)
class Line:
    """One curve: its name, colour and points in units of the axes."""

    name: str
    colour: str
    points: Sequence[Point]


def timeline(entries: Sequence[Mapping[str, Any]], lanes: Mapping[str, int]) -> Markup:
    """Events from left to right, one lane a group; verdicts above.

    Args:
        entries: of a `Story`.
        lanes: lane number by group.
    """
    step, height = 14, 18
    top = 30
    width = _LEFT + step * len(entries) + 20
    total = top + height * max(1, len(lanes)) + 10
    parts = [_open(width, total, "Timeline of events, one lane for each group of equal calls")]
    for group, lane in lanes.items():
        y = top + lane * height
        parts.append(
            Markup('<text class="tick" x="{}" y="{}" text-anchor="end">{}</text>').format(
                _LEFT - 8, y + 12, group
            )
        )
        parts.append(
            Markup('<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(
                _LEFT, width - 10, y + 8, y + 8
            )
        )
    for at, entry in enumerate(entries):
        parts.append(_event(entry, at, _LEFT + at * step, top, height, lanes))
    return _closed(parts)


def _event(
    entry: Mapping[str, Any], at: int, x: float, top: float, height: float, lanes: Mapping[str, int]
) -> Markup:
    lane = lanes.get(entry.get("group", ""))
    parts = [Markup('<g class="event" data-at="{}">').format(at)]
    parts.append(
        Markup('<rect class="hit" x="{}" y="0" width="14" height="{}"/>').format(
            x, top + height * max(1, len(lanes))
        )
    )
    if lane is None:
        parts.append(
            Markup('<line class="mark" x1="{0}" x2="{0}" y1="{1}" y2="{2}"/>').format(
                x + 6, top, top + height * max(1, len(lanes))
            )
        )
    else:
        y = top + lane * height
        refused = entry.get("disposition") == "refused" or entry.get("executed") is False
        kind, fill = "refused" if refused else "ran", colour(lane)
        parts.append(
            _SQUARE.format(kind, x + 1, y + 2, fill)
            if entry["kind"] == "tool_call"
            else _DOT.format(kind, x + 6, y + 8, fill)
        )
    for index, verdict in enumerate(entry["verdicts"][:2]):
        action = verdict["action"]
        parts.append(
            Markup('<text class="said {}" x="{}" y="{}">{}</text>').format(
                action, x + 1, 12 + 13 * index, _MARKS.get(action, "?")
            )
        )
    title = f"#{entry['n']} {entry['kind']} {entry.get('tool') or ''}"
    parts.append(Markup("<title>{}</title></g>").format(title))
    return Markup("").join(parts)


def curves(
    lines: Sequence[Line],
    thresholds: Mapping[str, float],
    label: str,
    *,
    x_label: str = "",
    y_max: float | None = None,
) -> Markup:
    """Curves over a common axis, with thresholds as dashed lines."""
    width, height = 720, 220
    xs = [x for line in lines for x, _ in line.points] or [0.0, 1.0]
    ys = [y for line in lines for _, y in line.points] + list(thresholds.values()) + [1.0]
    low, high = min(xs), max(*xs, min(xs) + 1)
    ceiling = y_max if y_max is not None else 2 * math.ceil(max(ys) * 0.525)
    inner_w, inner_h = width - _LEFT - 12, height - _TOP - _BOTTOM

    def place(x: float, y: float) -> str:
        px = _LEFT + (x - low) / (high - low) * inner_w
        py = _TOP + inner_h - min(y, ceiling) / ceiling * inner_h
        return f"{px:.1f},{py:.1f}"

    parts = [_open(width, height, label)]
    parts += _axes(low, high, ceiling, width, height, x_label)
    for name, value in thresholds.items():
        x1, y = place(low, value).split(",")
        parts.append(
            Markup(
                '<line class="limit" x1="{}" x2="{}" y1="{}" y2="{}"/>'
                '<text class="tick" x="{}" y="{}" text-anchor="end">{}</text>'
            ).format(x1, width - 12, y, y, width - 14, float(y) - 3, f"{name} {value:g}")
        )
    for line in lines:
        path = " ".join(place(x, y) for x, y in line.points)
        parts.append(
            Markup('<polyline points="{}" stroke="{}"><title>{}</title></polyline>').format(
                path, line.colour, line.name
            )
        )
    return _closed(parts)


def bars(counts: Sequence[tuple[str, Mapping[str, int]]], label: str) -> Markup:
    """Stacked bars: (name, counts by series) from left to right."""
    width, height = 720, 200
    most = max([sum(series.values()) for _, series in counts] + [1])
    inner_w, inner_h = width - _LEFT - 12, height - _TOP - _BOTTOM
    step = inner_w / max(1, len(counts))
    parts = [_open(width, height, label)]
    parts += _axes(0, len(counts), most, width, height, "", numbers=False)
    for at, (name, series) in enumerate(counts):
        y = float(_TOP + inner_h)
        for kind, count in series.items():
            tall = count / most * inner_h
            y -= tall
            parts.append(
                Markup(
                    '<rect class="bar {}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}">'
                    "<title>{}</title></rect>"
                ).format(
                    kind, _LEFT + at * step, y, max(1.0, step - 1), tall, f"{name}: {kind} {count}"
                )
            )
    if counts:
        for at, anchor in ((0, "start"), (len(counts) - 1, "end")):
            parts.append(
                Markup('<text class="tick" x="{:.1f}" y="{}" text-anchor="{}">{}</text>').format(
                    _LEFT + (at + (anchor == "end")) * step, height - 8, anchor, counts[at][0]
                )
            )
    return _closed(parts)


def _axes(
    low: float,
    high: float,
    ceiling: float,
    width: float,
    height: float,
    x_label: str,
    *,
    numbers: bool = True,
) -> list[Markup]:
    inner_h = height - _TOP - _BOTTOM
    parts = []
    for share in (0.0, 0.5, 1.0):
        y = _TOP + inner_h * (1 - share)
        parts.append(
            Markup(
                '<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>'
                '<text class="tick" x="{}" y="{}" text-anchor="end">{:.3g}</text>'
            ).format(_LEFT, width - 12, y, y, _LEFT - 6, y + 4, ceiling * share)
        )
    if numbers:
        for x, value, anchor in ((_LEFT, low, "start"), (width - 12, high, "end")):
            parts.append(
                Markup('<text class="tick" x="{}" y="{}" text-anchor="{}">{:g}</text>').format(
                    x, height - 8, anchor, value
                )
            )
    if x_label:
        parts.append(
            Markup('<text class="tick" x="{}" y="{}" text-anchor="middle">{}</text>').format(
                (width + _LEFT) / 2, height - 8, x_label
            )
        )
    return parts


def _open(width: float, height: float, label: str) -> Markup:
    return Markup(
        '<svg viewBox="0 0 {0:.0f} {1:.0f}" width="{0:.0f}" height="{1:.0f}" role="img" '
        'aria-label="{2}">'
    ).format(width, height, label)


def _closed(parts: Sequence[Markup]) -> Markup:
    return Markup("").join(parts) + Markup("</svg>")


def legend(lines: Sequence[Line]) -> Markup:
    """Names and colours of curves."""
    return Markup(" ").join(
        Markup('<span class="key"><i style="background:{}"></i>{}</span>').format(
            line.colour, escape(line.name)
        )
        for line in lines
    )
