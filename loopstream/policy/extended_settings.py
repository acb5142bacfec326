"""Settings of profile ``extended`` in force: the ``extended`` part within the documented block."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from loopstream.detect.extended.limits import ExtendedLimits
from loopstream.detect.extended.registry import detectors
from loopstream.detect.limits import Limits
from loopstream.policy.deployment import Profile
from loopstream.policy.extended_part import (
    DETECTORS,
    HISTORY,
    MODE,
    PATIENCE,
    TOOLS,
    issues,
    limits_of,
)
from loopstream.policy.rollout import default_mode, single_modes
from loopstream.policy.settings import EXTENDED, Block, resolve, resolve_reference


def resolve_for(profile: Profile, block: Block | None) -> Limits:
    """The limits in force under a profile."""
    if profile == "extended":
        return resolve_extended(block)
    return resolve(block) if profile == "documented" else resolve_reference(block)


def resolve_extended(block: Block | None) -> Limits:
    """The limits in force under profile ``extended``. Of the documented settings ``enabled`` and
    the post-compaction guard's count; a part with issues counts as absent.
    """
    limits = resolve(block, judges=())
    part = (block or {}).get(EXTENDED)
    usable = isinstance(part, Mapping) and next(issues(part), None) is None
    given = part if usable and part is not None else {}
    extended = limits_of(given, default_mode(block or {}), single_modes(block or {}))
    text = json.dumps([limits.digest, _view(extended)], sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return replace(limits, extended=extended, digest=digest)


def _view(limits: ExtendedLimits) -> dict[str, Any]:
    """All that decides, for the settings' digest: outside detectors take part."""
    return {
        HISTORY: limits.history_size,
        MODE: limits.mode,
        PATIENCE: limits.patience,
        DETECTORS: {d.name: repr(limits.arm(d, "")[1:]) for d in detectors()},
        TOOLS: [repr(tool) for tool in limits.tools],
    }
