"""Where the settings in force in a partition come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from loopstream.detect.base import DetectorName
from loopstream.detect.limits import Limits
from loopstream.events import Control, Pin
from loopstream.partition.settings import EVERYONE
from loopstream.policy.extended_settings import view_in_force


class Origins:
    """Remembers which record brought each block.

    Args:
        pin: what was in force at the begin of the partition.
        made: the pin was not found but made up from what is left.
    """

    def __init__(self, pin: Pin, *, made: bool = False, tried: str | None = None) -> None:
        what = "the config topic" if made else "the partition's pin"
        self._from = dict.fromkeys(pin.settings, f"{what} (config@{pin.config_offset})")
        self._tried = tried

    def see(self, controls: Iterable[Control], offset: int) -> None:
        """Settings that are sequenced at an offset of the partition."""
        for control in controls:
            if control.source == "config":
                verb = "taken away" if control.body is None else "pushed"
                self._from[control.key] = f"{verb} by config@{control.offset}, in force @{offset}"

    def describe(self, agent: str | None, limits: Limits) -> dict[str, Any]:
        """The limits of an agent's runs, and where they come from."""
        origins = {
            key: self._from[key]
            for key in (EVERYONE, agent)
            if key is not None and key in self._from
        }
        if self._tried is not None:
            origins["what_if"] = self._tried
        return {
            "digest": limits.digest,
            "from": origins or {"defaults": "no block was ever pushed: detection is off"},
            **view_in_force(limits),
        }


def chart_marks(settings: Mapping[str, Any]) -> dict[str, float]:
    """Thresholds to draw beside streaks: of equal results in a row.

    Args:
        settings: as `Origins.describe` gives them.
    """
    resolved = settings["resolved"]
    if "extended" not in resolved:
        return {"warn": resolved["warningThreshold"], "block": resolved["criticalThreshold"]}
    levels = resolved["extended"]["detectors"].get(DetectorName.GENERIC_REPEAT.value, {})
    found = {level: levels.get(level) for level in ("warn", "block")}
    return {f"generic_repeat {level}": value for level, value in found.items() if value}
