"""The pages of the documentation, as what they are made of: prose, files to write, commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(
    r"^```(\w+)(?:[^\n]*?title=\"([^\"]+)\")?[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE
)
_INLINE = re.compile(r"`(loopstream [^`\n]+)`")


@dataclass(frozen=True, slots=True)
class File:
    """A block with a title: the reader is to write it under that name."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """A line after a ``$``."""

    text: str

    @property
    def is_ours(self) -> bool:
        return re.search(r"(^|\s)loopstream\s", self.text) is not None


@dataclass(frozen=True, slots=True)
class Page:
    path: Path

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT))

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    def steps(self) -> Iterator[File | Command]:
        """What a reader writes and runs, in the order of the page."""
        for kind, title, body in _FENCE.findall(self.text):
            if title:
                yield File(title, body)
            elif kind == "console":
                for line in body.splitlines():
                    if line.startswith("$ "):
                        yield Command(line[2:].strip())

    def commands(self) -> list[str]:
        """All commands of ours, also those within a sentence."""
        shown = [step.text for step in self.steps() if isinstance(step, Command) and step.is_ours]
        return [*shown, *_INLINE.findall(_FENCE.sub("", self.text))]


def pages() -> list[Page]:
    """Everything that people read."""
    beside = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
    return [Page(path) for path in (*beside, *sorted((ROOT / "docs").rglob("*.md")))]
