"""A hook of mkdocs: a link out of docs/ into the repository becomes the name of what it leads to.

The pages are read in the repository too, where such links work; the site does not have the files.
A link to a file that the repository does not have stays, and fails the strict build.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

_LINK: Final = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)#\s]+)(?:#[^)\s]*)?\)")
_DOCS: Final = Path(__file__).resolve().parents[1] / "docs"


def on_page_markdown(markdown: str, *, page: Any, **_given: Any) -> str:
    """mkdocs: the page's text before it is rendered."""
    return without_outside_links(markdown, _DOCS / page.file.src_uri)


def without_outside_links(markdown: str, page: Path) -> str:
    """A page's text, its links to files outside docs/ replaced by their text."""

    def replaced(link: re.Match[str]) -> str:
        target = (page.parent / link[2]).resolve()
        return link[0] if target.is_relative_to(_DOCS) or not target.exists() else link[1]

    return _LINK.sub(replaced, markdown)
