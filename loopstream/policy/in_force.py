"""Detectors as they are for an agent: each setting with its value and where it comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from loopstream.detect.base import DetectorName
from loopstream.detect.extended.base import LEVELS, names_of
from loopstream.detect.extended.limits import ExtendedLimits, ToolSetting
from loopstream.detect.extended.registry import detectors
from loopstream.detect.limits import Limits
from loopstream.detect.rollout import Mode
from loopstream.policy.deployment import Mode as DeploymentMode
from loopstream.policy.deployment import Profile
from loopstream.policy.extended_part import camel
from loopstream.policy.extended_settings import resolve_for
from loopstream.policy.rollout import BY_DETECTOR, MODE, modes_of
from loopstream.policy.settings import (
    BREAKER,
    CRITICAL,
    DETECTORS,
    ENABLED,
    EXTENDED,
    GUARD,
    NUMBERS,
    SWITCHED,
    UNKNOWN_TOOL,
    WARNING,
    WINDOW,
    Block,
    as_section,
    judges_of,
    merge,
    resolved_view,
    switched_on,
    whole,
)

_DEFAULT: Final = "default"
_THRESHOLDS: Final[Mapping[str, tuple[str, ...]]] = {
    DetectorName.UNKNOWN_TOOL: (UNKNOWN_TOOL,),
    DetectorName.CIRCUIT_BREAKER: (BREAKER,),
    DetectorName.KNOWN_POLL: (WARNING, CRITICAL),
    DetectorName.PING_PONG: (WARNING, CRITICAL),
    DetectorName.GENERIC_REPEAT: (WARNING, CRITICAL),
    DetectorName.ARGUMENT_CHURN: (),
}


class Row(NamedTuple):
    """One setting of one detector."""

    detector: str
    about: str
    mode: Mode
    setting: str
    value: object
    origin: str


class Blocks(NamedTuple):
    """The blocks that count for an agent."""

    everyone: Block | None = None
    agent: str | None = None
    own: Block | None = None

    @property
    def merged(self) -> Block | None:
        """What is in force."""
        return merge(self.everyone, self.own)

    def layers(self) -> list[tuple[str, Block]]:
        """By origin, the weakest first."""
        found = [("everyone", self.everyone), (f"agent {self.agent}", self.own)]
        return [(origin, block) for origin, block in found if block is not None]

    def origin(self, *path: str) -> str | None:
        """The strongest layer that says something of a setting; None: none does."""
        said = [origin for origin, block in self.layers() if _has(block, path)]
        return said[-1] if said else None


def rows(
    profile: Profile, blocks: Blocks, *, tool: str = "", deployment: DeploymentMode = "enforce"
) -> Iterator[Row]:
    """The detectors of a profile in order, the guard last; of each first its mode.

    Args:
        tool: as they are for this tool (profile ``extended``).
        deployment: in ``shadow`` nothing is acted on, whatever the blocks say.
    """
    limits = resolve_for(profile, blocks.merged)
    found = _Extended(blocks, limits, tool) if profile == "extended" else None
    made = _documented(profile, blocks, limits) if found is None else found.rows()
    for row in (*made, *_guard(blocks, limits)):
        yield _in_shadow(row) if deployment == "shadow" and row.mode != "off" else row


def modes(
    profile: Profile, blocks: Blocks, *, deployment: DeploymentMode = "enforce"
) -> list[tuple[str, Mode, str]]:
    """Detector, mode and the mode's origin."""
    found = rows(profile, blocks, deployment=deployment)
    told = ((row.detector, row.mode, row.origin) for row in found if row.setting == MODE)
    return list(dict.fromkeys(told))


def _in_shadow(row: Row) -> Row:
    row = row._replace(mode="shadow")
    if row.setting != MODE:
        return row
    return row._replace(value="shadow", origin=f"deployment.{MODE}")


# -- documented profiles -------------------------------------------------------------------


def _documented(profile: Profile, blocks: Blocks, limits: Limits) -> Iterator[Row]:
    view = resolved_view(limits)["resolved"]
    fixed = profile != "documented"
    for name in judges_of(profile):
        mode, origin = _mode(blocks, limits, name)
        yield Row(name, "call", mode, MODE, mode, origin)
        for key in _THRESHOLDS[name]:
            where = "fixed by the profile" if fixed else _number_origin(blocks, key, view[key])
            yield Row(name, "call", mode, key, view[key], where)


def _mode(blocks: Blocks, limits: Limits, name: str) -> tuple[Mode, str]:
    if not limits.enabled:
        return "off", f"{ENABLED} is not true ({blocks.origin(ENABLED) or _DEFAULT})"
    merged, switch = blocks.merged or {}, SWITCHED.get(name, "")
    if as_section(merged, DETECTORS).get(switch) is False and not switched_on(limits, name):
        return "off", f"{DETECTORS}.{switch} is false ({blocks.origin(DETECTORS, switch)})"
    return modes_of(merged, (name,))[name], _mode_origin(blocks, name)


def _mode_origin(blocks: Blocks, name: str) -> str:
    return blocks.origin(BY_DETECTOR, name) or blocks.origin(MODE) or _DEFAULT


def _number_origin(blocks: Blocks, key: str, value: int) -> str:
    given = whole((blocks.merged or {}).get(key))
    origin = _DEFAULT if given is None else blocks.origin(key) or _DEFAULT
    given = given or NUMBERS[key]
    return origin if given == value else f"{origin}, {given} is clamped"


def _guard(blocks: Blocks, limits: Limits) -> Iterator[Row]:
    name = DetectorName.GUARD.value
    mode: Mode = limits.guard_mode if limits.guard else "off"
    origin = _mode_origin(blocks, name)
    if (blocks.merged or {}).get(ENABLED) is False:
        origin = f"{ENABLED} is false ({blocks.origin(ENABLED)})"
    yield Row(name, "run", mode, MODE, mode, origin)
    where = blocks.origin(GUARD, WINDOW) or _DEFAULT
    yield Row(name, "run", mode, f"{GUARD}.{WINDOW}", limits.guard_window, where)


# -- profile extended ----------------------------------------------------------------------


class _Extended:
    def __init__(self, blocks: Blocks, limits: Limits, tool: str) -> None:
        self._blocks = blocks
        self._limits = limits.extended or ExtendedLimits()
        self._on = limits.enabled
        self._tool = tool

    def rows(self) -> Iterator[Row]:
        for detector in detectors():
            armed = self._limits.arm(detector, self._tool)
            name, about = detector.name, detector.about.name.lower()
            mode: Mode = armed.mode if self._on else "off"
            yield Row(name, about, mode, MODE, mode, self._mode_origin(name))
            for field in names_of(type(armed.params)):
                setting = f"{EXTENDED}.{DETECTORS}.{name}.{camel(field)}"
                value, origin = getattr(armed.params, field), self._origin(name, field)
                yield Row(name, about, mode, setting, value, origin)

    def _origin(self, detector: str, field: str) -> str:
        key = camel(field)
        path = (DETECTORS, detector, key)
        origin = self._of_tool(*path) or self._blocks.origin(EXTENDED, *path) or _DEFAULT
        patience = self._limits.patience_for(self._tool)
        moved = field in LEVELS and patience != 1
        return f"{origin}, times patience {patience:g}" if moved else origin

    def _mode_origin(self, detector: str) -> str:
        """The most specific that says something goes before all others."""
        if not self._on:
            return f"{ENABLED} is not true ({self._blocks.origin(ENABLED) or _DEFAULT})"
        said = (
            self._of_tool(DETECTORS, detector, MODE) or self._of_tool(MODE),
            self._blocks.origin(EXTENDED, DETECTORS, detector, MODE),
            self._blocks.origin(BY_DETECTOR, detector),
            self._blocks.origin(EXTENDED, MODE),
            self._blocks.origin(MODE),
        )
        return next((origin for origin in said if origin is not None), _DEFAULT)

    def _of_tool(self, *path: str) -> str | None:
        """The strongest of the tool settings that match, and whose it is."""
        found = None
        for origin, block in self._blocks.layers():
            for pattern, setting in as_section(as_section(block, EXTENDED), "tools").items():
                if _has(setting, path) and ToolSetting(pattern).matches(self._tool):
                    found = f"{origin}, tool {pattern}"
        return found


def _has(block: Any, path: Sequence[str]) -> bool:
    return _at(block, path) is not None


def _at(block: Any, path: Sequence[str]) -> object:
    for key in path:
        if not isinstance(block, Mapping):
            return None
        block = block.get(key)
    return block
