"""Settings of profile ``extended`` in force: the ``extended`` part within the documented block."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from loopstream.detect.extended.base import Detector, names_of
from loopstream.detect.extended.limits import ExtendedLimits
from loopstream.detect.extended.registry import detectors
from loopstream.detect.limits import Limits
from loopstream.policy.deployment import Profile
from loopstream.policy.extended_part import (
    DETECTORS,
    HISTORY,
    MODE,
    PATIENCE,
    POLL,
    TOOLS,
    camel,
    issues,
    limits_of,
)
from loopstream.policy.rollout import default_mode, single_modes
from loopstream.policy.settings import (
    ENABLED,
    EXTENDED,
    Block,
    resolve,
    resolve_reference,
    resolved_view,
)


def resolve_for(profile: Profile, block: Block | None) -> Limits:
    """The limits in force under a profile."""
    if profile == "extended":
        return resolve_extended(block)
    return resolve(block) if profile == "documented" else resolve_reference(block)


def view_in_force(limits: Limits) -> dict[str, Any]:
    """Limits as people read them: of profile ``extended`` all that it goes by, in the shape in
    which it is pushed; of the others as `resolved_view`.
    """
    view = resolved_view(limits)
    if limits.extended is None:
        return view
    resolved = {ENABLED: limits.enabled, EXTENDED: extended_view(limits.extended)}
    return {**view, "resolved": resolved}


def extended_view(limits: ExtendedLimits) -> dict[str, Any]:
    """An ``extended`` part with every default filled in; a mode only where it is not the part's."""
    view: dict[str, Any] = {
        HISTORY: limits.history_size,
        MODE: limits.mode,
        PATIENCE: limits.patience,
        DETECTORS: {d.name: _armed(limits, d, "") for d in detectors()},
    }
    if limits.tools:
        named = {name for setting in limits.tools for name in setting.detectors}
        told = [d for d in detectors() if d.name in named]
        view[TOOLS] = {
            tool.pattern: {
                **({MODE: tool.mode} if tool.mode else {}),
                PATIENCE: limits.patience_for(tool.pattern),
                **({POLL: tool.poll} if tool.poll is not None else {}),
                DETECTORS: {
                    d.name: _armed(limits, d, tool.pattern)
                    for d in told
                    if d.name in tool.detectors
                },
            }
            for tool in limits.tools
        }
    return view


def _armed(limits: ExtendedLimits, detector: Detector, tool: str) -> dict[str, Any]:
    armed = limits.arm(detector, tool)
    values = {camel(name): getattr(armed.params, name) for name in names_of(type(armed.params))}
    return values if armed.mode == limits.mode else {MODE: armed.mode, **values}


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
