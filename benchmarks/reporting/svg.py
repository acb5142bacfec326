"""Two kinds of plots as SVG, by hand: bars with the spread of their rounds, and lines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final
from xml.sax.saxutils import escape

from benchmarks.kit.results import shown
from benchmarks.kit.stats import Spread

WIDTH: Final = 760
LABEL: Final = 250
BAR: Final = 22
GAP: Final = 8
TOP: Final = 44
HEIGHT: Final = 320
LEFT: Final = 70
BOTTOM: Final = 46
# Readable on white and on black.
COLOURS: Final = ("#3b82c4", "#d97706", "#4d9e57", "#a855a8", "#c94f4f", "#7a7a7a")
STYLE: Final = 'font-family="sans-serif" font-size="12" fill="#808080"'

Points = Sequence[Sequence[float]]


def bars(title: str, unit: str, values: Mapping[str, Spread], ours: str = "") -> str:
    """One bar a name, as long as its median; a line from its least to its greatest round.

    Args:
        title: above the plot.
        unit: of the values.
        values: by name, drawn in this order.
        ours: names that have this in them are drawn in another colour.
    """
    top = max(spread.greatest for spread in values.values()) or 1.0
    room = WIDTH - LABEL - 90
    parts = [_text(8, 22, f"{title} ({unit})", 'font-weight="bold"')]
    for number, (name, spread) in enumerate(values.items()):
        y = TOP + number * (BAR + GAP)
        colour = COLOURS[1] if ours and ours in name else COLOURS[0]
        length = spread.median / top * room
        least, most = (LABEL + value / top * room for value in (spread.least, spread.greatest))
        middle = y + BAR / 2
        parts += [
            _text(LABEL - 8, y + 15, name, 'text-anchor="end"'),
            f'<rect x="{LABEL}" y="{y}" width="{length:.1f}" height="{BAR}" fill="{colour}"/>',
            f'<path d="M{least:.1f} {middle}H{most:.1f}" stroke="#404040" stroke-width="2"/>',
            _text(max(most, LABEL + length) + 6, y + 15, shown(spread.median)),
        ]
    return _svg(TOP + len(values) * (BAR + GAP) + 8, parts)


def lines(
    title: str, x_name: str, y_name: str, series: Mapping[str, Points], *, log_x: bool = False
) -> str:
    """One line a series over a common axis; ``y`` begins at 0."""
    xs = [_x(point[0], log_x) for points in series.values() for point in points]
    ys = [point[1] for points in series.values() for point in points]
    low, high, top = min(xs), max(xs), max(ys) or 1.0
    wide, tall = WIDTH - LEFT - 20, HEIGHT - TOP - BOTTOM

    def place(point: Sequence[float]) -> str:
        across = (_x(point[0], log_x) - low) / ((high - low) or 1.0)
        return f"{LEFT + across * wide:.1f} {TOP + tall - point[1] / top * tall:.1f}"

    ground = TOP + tall
    parts = [
        _text(8, 22, f"{title}: {y_name}", 'font-weight="bold"'),
        f'<path d="M{LEFT} {TOP}V{ground}H{LEFT + wide}" fill="none" stroke="#808080"/>',
        _text(LEFT - 6, TOP + 5, shown(top), 'text-anchor="end"'),
        _text(LEFT - 6, ground, "0", 'text-anchor="end"'),
        _text(LEFT, ground + 16, shown(10**low if log_x else low)),
        _text(LEFT + wide, ground + 16, shown(10**high if log_x else high), 'text-anchor="end"'),
        _text(LEFT + wide / 2, ground + 16, x_name, 'text-anchor="middle"'),
    ]
    for number, (name, points) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = "L".join(place(point) for point in points)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(_text(LEFT + number * 170, HEIGHT - 8, f"■ {name}", "", colour))
    return _svg(HEIGHT, parts)


def _x(value: float, log_x: bool) -> float:
    return math.log10(value) if log_x else value


def _text(x: float, y: float, text: str, more: str = "", colour: str = "") -> str:
    style = STYLE.replace("#808080", colour) if colour else STYLE
    return f'<text x="{x:.0f}" y="{y:.0f}" {style} {more}>{escape(text)}</text>'


def _svg(height: int, parts: list[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}"'
    return "\n".join([f'{head} height="{height}" role="img">', *parts, "</svg>", ""])
