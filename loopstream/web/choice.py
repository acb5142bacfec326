"""What of the verdicts a page shows: the filters, as they stand in its address."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from loopstream.events import Verdict
from loopstream.web.collapse import Shown, collapsed
from loopstream.web.ring import Said

FIELDS: Final = ("agent", "tool", "detector", "action")
_MAX: Final = 512


@dataclass(frozen=True, slots=True)
class Choice:
    """Verdicts of which all that is named holds; an empty text names nothing."""

    agent: str = ""
    tool: str = ""
    detector: str = ""
    action: str = ""
    scope: str = ""
    """Of one run alone; not part of the address of a page."""

    @classmethod
    def of(cls, query: Mapping[str, str], scope: str = "") -> Choice:
        """The filters in a query string."""
        named = {name: query.get(name, "").strip()[:_MAX] for name in FIELDS}
        return cls(**named, scope=scope)

    def takes(self, verdict: Verdict) -> bool:
        """Whether a verdict is shown; answers that say nothing are shown only if asked for."""
        action = verdict.action.value
        if not self.action and action == "answer" and verdict.level.value == "none":
            return False
        return (
            self.scope in {"", verdict.scope}
            and self.agent in {"", verdict.agent}
            and self.tool in {"", verdict.tool}
            and self.detector in {"", verdict.detector}
            and self.action in {"", action}
        )

    def pick(self, said: Iterable[Said], limit: int) -> list[Shown]:
        """The first few rows; ``said`` has the newest first."""
        return collapsed((item for item in said if self.takes(item.verdict)), limit)

    @property
    def query(self) -> str:
        """The filters as a query string, without those that are empty."""
        return urlencode({name: text for name in FIELDS if (text := getattr(self, name))})
