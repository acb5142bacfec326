"""Stacks that py-spy counted as a flame graph (SVG) and as top lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final
from xml.sax.saxutils import escape

Stack = tuple[list[str], int]

WIDTH: Final = 1200
LAYER: Final = 17
LEAST: Final = 0.002
TOP: Final = 30
# Everything below the event loop's call is how Python got there.
LOOP: Final = "execute_from_commandline"


@dataclass(slots=True)
class Node:
    """A function as it was called from its parent."""

    count: int = 0
    children: dict[str, Node] = field(default_factory=dict)

    def depth(self, least: float) -> int:
        """Layers, without those too narrow to be drawn."""
        shown = [node for node in self.children.values() if node.count >= least]
        return 1 + max((node.depth(least) for node in shown), default=0)


def stacks(raw: str) -> Iterator[Stack]:
    """(frames from the event loop on, samples) of py-spy's raw form; the start is left out."""
    for line in raw.splitlines():
        stack, _, count = line.rpartition(" ")
        frames = stack.split(";")
        at = next((n for n, frame in enumerate(frames) if LOOP in frame), None)
        if at is not None:
            yield [_without_line(frame) for frame in frames[at:]], int(count)


def _without_line(frame: str) -> str:
    head, colon, line = frame.rpartition(":")
    return f"{head})" if colon and line.rstrip(")").isdigit() else frame


def flame(seen: Iterable[Stack]) -> str:
    """The graph, callers above: width is samples, and a tip names function and share."""
    root = Node()
    for frames, count in seen:
        root.count += count
        node = root
        for frame in frames:
            node = node.children.setdefault(frame, Node())
            node.count += count
    least = root.count * LEAST
    height = root.depth(least) * LAYER
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
    style = 'font-family="sans-serif" font-size="11"'
    return "\n".join([f"{head} {style}>", *_layer(root, 0.0, 0, root.count or 1), "</svg>", ""])


def _layer(node: Node, left: float, depth: int, total: int) -> Iterator[str]:
    for name, child in node.children.items():
        wide = child.count / total * WIDTH
        if child.count >= total * LEAST:
            y = depth * LAYER
            colour = "#e0954a" if "(loopstream/" in name else "#9db4c8"
            yield (
                f'<g><title>{escape(name)}: {child.count / total:.1%}</title><rect x="{left:.1f}" '
                f'y="{y}" width="{wide:.1f}" height="{LAYER - 1}" fill="{colour}"/>'
                f'<text x="{left + 2:.1f}" y="{y + 12}">{escape(_short(name, wide))}</text></g>'
            )
            yield from _layer(child, left, depth + 1, total)
        left += wide


def _short(name: str, wide: float) -> str:
    room = int(wide / 6.5)
    function = name.partition(" (")[0]
    return function if len(function) <= room else function[: room - 1] + "…" if room > 3 else ""


def top_lists(seen: Iterable[Stack]) -> Iterator[str]:
    """Shares by module of ours, and by function, of samples on top of the stack."""
    own: Counter[str] = Counter()
    modules: Counter[str] = Counter()
    for frames, count in seen:
        own[frames[-1]] += count
        modules[_module(frames)] += count
    total = own.total() or 1
    yield "| share | the innermost module of ours on the stack, else the library |"
    yield "|---|---|"
    for name, count in modules.most_common(TOP // 2):
        yield f"| {count / total:.1%} | {name} |"
    yield ""
    yield "| share | function, by samples of its own |"
    yield "|---|---|"
    for name, count in own.most_common(TOP):
        yield f"| {count / total:.1%} | `{name}` |"


def _module(frames: list[str]) -> str:
    for frame in reversed(frames):
        if "(loopstream/" in frame:
            return frame.partition("(")[2].rstrip(")")
    return frames[-1].partition("(")[2].split("/")[0].rstrip(")")
