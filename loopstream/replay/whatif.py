"""What-if settings: other blocks instead of the recorded ones, or a few values laid over them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from loopstream.errors import UsageError
from loopstream.partition.settings import EVERYONE, SettingsInForce
from loopstream.policy.deployment import Profile
from loopstream.policy.settings import merge, refuse, strict_issues

_HINT: Final = (
    "Keys are those of tools.loopDetection, for example warningThreshold=15 or "
    "detectors.pingPong=false."
)


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Settings to try.

    Attributes:
        blocks: JSON blocks by agent id or ``*``, in force all the time; None: the recorded history.
        overlay: laid over every agent's block.
    """

    blocks: Mapping[str, str] | None = None
    overlay: Mapping[str, Any] = field(default_factory=dict)

    @property
    def active(self) -> bool:
        """Whether anything differs from the recording."""
        return self.blocks is not None or bool(self.overlay)

    def describe(self) -> str:
        """In a few words."""
        base = "recorded" if self.blocks is None else "given"
        over = json.dumps(self.overlay, sort_keys=True) if self.overlay else ""
        return f"{base} settings with {over}" if over else f"{base} settings"

    def in_force(self, profile: Profile, blocks: dict[str, str]) -> SettingsInForce:
        """Makes the settings of a fold (`loopstream.partition.Partition`)."""
        return _Settings(self, profile, blocks)


class _Settings(SettingsInForce):
    def __init__(self, what: WhatIf, profile: Profile, blocks: dict[str, str]) -> None:
        super().__init__(profile, blocks if what.blocks is None else dict(what.blocks))
        self._what = what

    def put(self, key: str, text: str | None) -> str | None:
        if self._what.blocks is not None:
            return None  # the given blocks stand, whatever was pushed then
        return super().put(key, text)

    def _block(self, key: str) -> Any:
        block = super()._block(key)
        if not self._what.overlay or (block is None and key != EVERYONE):
            return block
        return merge(block, self._what.overlay)


def parse_overlay(assignments: Sequence[str]) -> dict[str, Any]:
    """``a.b=v`` texts as one settings block.

    Raises:
        UsageError: no such setting, or a value that it can't have.
    """
    overlay: dict[str, Any] = {}
    for text in assignments:
        path, equals, value = text.partition("=")
        names = path.strip().split(".")
        if not (equals and all(names) and len(names) <= 2):
            raise UsageError(f"--set {text}: not KEY=VALUE.", hint=_HINT)
        try:
            parsed = json.loads(value)
        except (ValueError, RecursionError):
            raise UsageError(f"--set {text}: no number, true or false.", hint=_HINT) from None
        section = overlay if len(names) == 1 else overlay.setdefault(names[0], {})
        if not isinstance(section, dict):
            raise UsageError(f"--set {text}: {names[0]} is set already.", hint=_HINT)
        section[names[-1]] = parsed
    if issues := [i for i in strict_issues(overlay) if not i.startswith("order:")]:
        raise UsageError(f"--set: {', '.join(issues)}.", hint=_HINT)
    if (why := refuse(overlay)) is not None:
        raise UsageError(f"--set: {why}.")
    return overlay
