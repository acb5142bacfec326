"""Settings of profile ``extended``: from the ``extended`` part of a block to what is in force.

The part stands inside the documented block: ``{"enabled": true, "extended": {...}}``. Blocks are
merged field by field, the agent's over everyone's, and refused as a whole if anything in them is
unknown or of the wrong type: a misspelt threshold must not go unnoticed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from loopstream.detect.extended.base import LEVELS, Detector, Params, names_of
from loopstream.detect.extended.limits import (
    DEFAULT_HISTORY,
    MAX_HISTORY,
    MODES,
    ExtendedLimits,
    Mode,
    Setting,
    ToolSetting,
    with_values,
)
from loopstream.detect.extended.registry import detectors
from loopstream.detect.limits import Limits
from loopstream.policy.deployment import Profile
from loopstream.policy.settings import (
    EXTENDED,
    Block,
    as_block,
    merge_deep,
    resolve,
    resolve_reference,
)

HISTORY: Final = "historySize"
PATIENCE: Final = "patience"
MODE: Final = "mode"
DETECTORS: Final = "detectors"
TOOLS: Final = "tools"
POLL: Final = "poll"
MAX_TOOLS: Final = 256
_MAX_PATIENCE: Final = 1_000
_MAX_VALUE: Final = 10**12

__all__ = ["issues", "merge_deep", "resolve_extended", "resolve_for"]


def resolve_for(profile: Profile, block: Block | None) -> Limits:
    """The limits in force under a profile."""
    if profile == "extended":
        return resolve_extended(block)
    return resolve(block) if profile == "documented" else resolve_reference(block)


def resolve_extended(block: Block | None) -> Limits:
    """The limits in force under profile ``extended``. Of the documented settings ``enabled`` and
    the post-compaction guard's count; a part with issues counts as absent.
    """
    limits = resolve(block)
    part = as_block((block or {}).get(EXTENDED)) or {}
    extended = ExtendedLimits() if list(issues(part)) else _limits_of(part)
    text = json.dumps([limits.digest, _view(extended)], sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return replace(limits, extended=extended, digest=digest)


def issues(part: object) -> Iterator[str]:
    """What is wrong with an ``extended`` part, as sentences that name the path; none: nothing."""
    block = as_block(part)
    if block is None:
        yield f"{EXTENDED} is no object"
        return
    for key, value in block.items():
        path = f"{EXTENDED}.{key}"
        if key == HISTORY:
            yield from _whole(path, value, 16, MAX_HISTORY)
        elif key == DETECTORS:
            yield from _detector_issues(path, value)
        elif key == TOOLS:
            yield from _tool_issues(path, value)
        else:
            yield from _common(path, key, value)


def _common(path: str, key: str, value: object) -> Iterator[str]:
    if key == MODE:
        if value not in MODES:
            yield f"{path} is none of {', '.join(MODES)}"
    elif key == PATIENCE:
        if not _is_number(value) or not 0 < _number(value) <= _MAX_PATIENCE:
            yield f"{path} is no number above 0"
    else:
        yield f"{path} is no setting"


def _tool_issues(path: str, value: object) -> Iterator[str]:
    block = as_block(value)
    if block is None or len(block) > MAX_TOOLS:
        yield f"{path} is no object of at most {MAX_TOOLS} tools"
        return
    for name, setting in block.items():
        inner = as_block(setting)
        if inner is None:
            yield f"{path}.{name} is no object"
            continue
        for key, item in inner.items():
            at = f"{path}.{name}.{key}"
            if key == DETECTORS:
                yield from _detector_issues(at, item)
            elif key == POLL:
                if not isinstance(item, bool):
                    yield f"{at} is not true or false"
            else:
                yield from _common(at, key, item)


def _detector_issues(path: str, value: object) -> Iterator[str]:
    block = as_block(value)
    if block is None:
        yield f"{path} is no object"
        return
    known = by_name()
    for name, setting in block.items():
        inner = as_block(setting)
        if name not in known:
            yield f"{path}.{name} is no detector; there are {', '.join(known)}"
        elif inner is None:
            yield f"{path}.{name} is no object"
        else:
            yield from _param_issues(f"{path}.{name}", known[name].defaults, inner)


def _param_issues(path: str, defaults: Params, block: Block) -> Iterator[str]:
    fields = {camel(name): name for name in names_of(type(defaults))}
    values: dict[str, int | float] = {}
    for key, value in block.items():
        if key == MODE:
            yield from _common(f"{path}.{key}", key, value)
        elif key not in fields:
            yield f"{path}.{key} is no setting; there are {MODE}, {', '.join(fields)}"
        elif isinstance(getattr(defaults, fields[key]), float):
            if _is_number(value) and 0 < _number(value) <= _MAX_PATIENCE:
                values[fields[key]] = _number(value)
            else:
                yield f"{path}.{key} is no number above 0"
        else:
            found = list(_whole(f"{path}.{key}", value, 0, _MAX_VALUE))
            yield from found
            if not found:
                values[fields[key]] = int(_number(value))
    yield from _order_issues(path, with_values(defaults, values), block)


def _order_issues(path: str, params: Params, block: Block) -> Iterator[str]:
    levels = [(name, getattr(params, name)) for name in LEVELS if getattr(params, name)]
    for (low, lower), (high, higher) in pairwise(levels):
        if lower >= higher and (low in block or high in block):
            yield f"{path}.{high} {higher} is not above {low} {lower}"


def _whole(path: str, value: object, least: int, most: int) -> Iterator[str]:
    if not _is_number(value) or _number(value) != int(_number(value)):
        yield f"{path} is no whole number"
    elif not least <= _number(value) <= most:
        yield f"{path} is not between {least} and {most}"


def _is_number(value: object) -> bool:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _MAX_VALUE
    )


def _number(value: Any) -> float | int:
    return value if isinstance(value, int | float) else 0


# -- from a valid part ---------------------------------------------------------------------


def _limits_of(part: Block) -> ExtendedLimits:
    tools = [
        ToolSetting(
            name,
            setting.get(MODE),
            setting.get(PATIENCE),
            setting.get(POLL),
            _settings_of(setting.get(DETECTORS) or {}),
        )
        for name, setting in (part.get(TOOLS) or {}).items()
    ]
    # Beginnings before exact names, short before long: the most specific comes last.
    tools.sort(key=lambda tool: (not tool.pattern.endswith("*"), len(tool.pattern), tool.pattern))
    return ExtendedLimits(
        history_size=int(part.get(HISTORY, DEFAULT_HISTORY)),
        mode=part.get(MODE, "enforce"),
        patience=part.get(PATIENCE, 1.0),
        detectors=_settings_of(part.get(DETECTORS) or {}),
        tools=tuple(tools),
    )


def _settings_of(block: Block) -> dict[str, Setting]:
    known = by_name()
    settings: dict[str, Setting] = {}
    for name, inner in block.items():
        fields = {camel(field): field for field in names_of(type(known[name].defaults))}
        values = tuple((fields[key], inner[key]) for key in sorted(inner) if key != MODE)
        mode: Mode | None = inner.get(MODE)
        settings[name] = Setting(mode, values)
    return settings


def by_name() -> Mapping[str, Detector]:
    """Detectors by name; two that share one have the same parameters."""
    return {detector.name: detector for detector in detectors()}


def camel(name: str) -> str:
    """A parameter's name as it is written in settings."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _view(limits: ExtendedLimits) -> dict[str, Any]:
    """All that decides, for the settings' digest: outside detectors take part."""
    return {
        HISTORY: limits.history_size,
        MODE: limits.mode,
        PATIENCE: limits.patience,
        DETECTORS: {d.name: repr(limits.arm(d, "")[1:]) for d in detectors()},
        TOOLS: [repr(tool) for tool in limits.tools],
    }
