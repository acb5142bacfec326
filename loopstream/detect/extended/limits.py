"""The settings of profile ``extended`` in force for a run, resolved for each tool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

from loopstream.detect.extended.base import About, Detector, Params
from loopstream.detect.extended.registry import BUILT_IN, detectors
from loopstream.detect.rollout import Mode

DEFAULT_HISTORY: Final = 240
MAX_HISTORY: Final = 1_000
# Tools come and go: what was resolved for them is only a cache.
_MAX_CACHED: Final = 1_000


class Armed(NamedTuple):
    """A detector with the parameters and mode that hold for one tool."""

    detector: Detector
    params: Params
    mode: Mode


Rules = tuple[tuple[Armed, ...], ...]


@dataclass(frozen=True, slots=True)
class Setting:
    """What is set for one detector: changes to its parameters, and a mode."""

    mode: Mode | None = None
    values: tuple[tuple[str, int | float], ...] = ()


@dataclass(frozen=True, slots=True)
class ToolSetting:
    """What is set for a tool (an exact name, or a beginning with ``*`` behind it)."""

    pattern: str
    mode: Mode | None = None
    patience: float | None = None
    poll: bool | None = None
    detectors: Mapping[str, Setting] = field(default_factory=dict)

    def matches(self, tool: str) -> bool:
        """Whether the setting is for a tool."""
        if self.pattern.endswith("*"):
            return tool.startswith(self.pattern[:-1])
        return tool == self.pattern


@dataclass(frozen=True)
class ExtendedLimits:
    """Resolved settings; ``tools`` from the least to the most specific."""

    history_size: int = DEFAULT_HISTORY
    mode: Mode = "enforce"
    patience: float = 1.0
    detectors: Mapping[str, Setting] = field(default_factory=dict)
    tools: tuple[ToolSetting, ...] = ()
    _rules: dict[str, Rules] = field(default_factory=dict, init=False, compare=False, repr=False)
    _polls: dict[str, bool | None] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    @cached_property
    def spends(self) -> bool:
        """Whether any budget may be set."""
        return "budget" in self.detectors or any("budget" in t.detectors for t in self.tools)

    @cached_property
    def outside(self) -> bool:
        """Whether there are detectors that are not ours."""
        return len(detectors()) > len(BUILT_IN)

    def rules(self, tool: str) -> Rules:
        """Detectors that are on for a tool, by what they look at (`About`)."""
        rules = self._rules.get(tool)
        if rules is None:
            if len(self._rules) >= _MAX_CACHED:
                self._rules.clear()
            rules = self._rules[tool] = self._resolve(tool)
        return rules

    def poll(self, tool: str) -> bool | None:
        """Whether a tool is declared to be a poll; None: nothing is said."""
        if not self.tools:
            return None
        if tool not in self._polls:
            if len(self._polls) >= _MAX_CACHED:
                self._polls.clear()
            said = [t.poll for t in self.tools if t.poll is not None and t.matches(tool)]
            self._polls[tool] = said[-1] if said else None
        return self._polls[tool]

    def _resolve(self, tool: str) -> Rules:
        armed = [self.arm(detector, tool) for detector in detectors()]
        return tuple(
            tuple(a for a in armed if a.detector.about is about and a.mode != "off")
            for about in About
        )

    def patience_for(self, tool: str) -> float:
        """The factor on all levels for a tool."""
        patience = self.patience
        for setting in self.tools:
            if setting.matches(tool):
                patience = setting.patience or patience
        return patience

    def arm(self, detector: Detector, tool: str) -> Armed:
        """A detector as it is set for a tool: field by field, the most specific wins."""
        mode, patience = self.mode, self.patience_for(tool)
        values: dict[str, int | float] = {}
        own = self.detectors.get(detector.name)
        if own is not None:
            mode = own.mode or mode
            values.update(own.values)
        for setting in self.tools:
            if setting.matches(tool):
                mode = setting.mode or mode
                own = setting.detectors.get(detector.name)
                if own is not None:
                    mode = own.mode or mode
                    values.update(own.values)
        params = with_values(detector.defaults, values).ordered()
        return Armed(detector, params if patience == 1 else params.scaled(patience), mode)


def with_values(params: Params, values: Mapping[str, int | float]) -> Params:
    """Parameters with some of them changed."""
    kept = {name: getattr(params, name) for name in params.__dataclass_fields__}
    return type(params)(**{**kept, **values})
