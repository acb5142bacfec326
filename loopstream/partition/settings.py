"""The settings in force in one partition: blocks by agent, and the limits they come to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from loopstream.detect.limits import Limits
from loopstream.policy.deployment import Profile
from loopstream.policy.extended_settings import resolve_for
from loopstream.policy.settings import merge, refuse

EVERYONE: Final = "*"
# All blocks of a prefix, keys included: they stand in one pin, which is one record.
MAX_SETTINGS_BYTES: Final = 768 * 1024
# Agents come and go: what was resolved for them is only a cache.
_MAX_RESOLVED: Final = 10_000


class SettingsInForce:
    """Blocks as JSON text by key (agent id or ``*``), resolved when a run asks for them.

    Args:
        profile: which settings count.
        blocks: what was in force when the partition was last written down.
    """

    def __init__(self, profile: Profile, blocks: dict[str, str] | None = None) -> None:
        self._profile = profile
        self.blocks: dict[str, str] = dict(blocks or {})
        self._bytes = bytes_of(self.blocks)
        self._resolved: dict[str | None, Limits] = {}

    def limits(self, agent: str | None) -> Limits:
        """The limits for an agent's runs."""
        limits = self._resolved.get(agent)
        if limits is None:
            if len(self._resolved) >= _MAX_RESOLVED:
                self._resolved.clear()
            own = self._block(agent) if agent is not None and agent != EVERYONE else None
            limits = resolve_for(self._profile, merge(self._block(EVERYONE), own))
            self._resolved[agent] = limits
        return limits

    def put(self, key: str, text: str | None) -> str | None:
        """Take a block, or with None take it away.

        Returns:
            Why the block is refused (the old one stays in force), or None if it is taken.
        """
        if text is None:
            self._bytes -= self._bytes_under(key)
            self.blocks.pop(key, None)
        else:
            try:
                block = json.loads(text)
            except (ValueError, RecursionError):
                return "not JSON"
            if (why := refuse(block)) is not None:
                return why
            more = bytes_of({key: text}) - self._bytes_under(key)
            if self._bytes + more > MAX_SETTINGS_BYTES:
                return f"more than {MAX_SETTINGS_BYTES} bytes of settings in all"
            self._bytes += more
            self.blocks[key] = text
        self._resolved.clear()
        return None

    def _bytes_under(self, key: str) -> int:
        text = self.blocks.get(key)
        return 0 if text is None else bytes_of({key: text})

    def _block(self, key: str) -> Any:
        text = self.blocks.get(key)
        return None if text is None else json.loads(text)


def bytes_of(blocks: Mapping[str, str]) -> int:
    """What blocks take in UTF-8, their keys included."""
    return sum(
        len(part.encode("utf-8", "surrogatepass")) for item in blocks.items() for part in item
    )
