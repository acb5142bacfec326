"""The ``extended`` part of a settings block, read: what is wrong with it, and what it comes to.

A part is refused as a whole if anything in it is unknown or of the wrong type: a misspelt
threshold must not go unnoticed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

from loopstream.detect.extended.base import LEVELS, Detector, Params, names_of
from loopstream.detect.extended.limits import (
    DEFAULT_HISTORY,
    MAX_HISTORY,
    ExtendedLimits,
    Setting,
    ToolSetting,
)
from loopstream.detect.extended.registry import detectors
from loopstream.detect.rollout import MODES, Mode

HISTORY: Final = "historySize"
PATIENCE: Final = "patience"
MODE: Final = "mode"
DETECTORS: Final = "detectors"
TOOLS: Final = "tools"
POLL: Final = "poll"
MAX_TOOLS: Final = 256
_MAX_PATIENCE: Final = 1_000
_MAX_VALUE: Final = 10**12

Block = Mapping[str, Any]


def issues(part: object) -> Iterator[str]:
    """What is wrong with an ``extended`` part, as sentences that name the path; none: nothing."""
    block = _as_block(part)
    if block is None:
        yield "extended is no object"
        return
    for key, value in block.items():
        path = f"extended.{key}"
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
    block = _as_block(value)
    if block is None or len(block) > MAX_TOOLS:
        yield f"{path} is no object of at most {MAX_TOOLS} tools"
        return
    for name, setting in block.items():
        inner = _as_block(setting)
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
    block = _as_block(value)
    if block is None:
        yield f"{path} is no object"
        return
    known = by_name()
    for name, setting in block.items():
        inner = _as_block(setting)
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
    yield from _order_issues(path, values)


def _order_issues(path: str, values: Mapping[str, int | float]) -> Iterator[str]:
    """Of levels that are set together; against others they are clamped."""
    levels = [(name, values[name]) for name in LEVELS if values.get(name)]
    for (low, lower), (high, higher) in pairwise(levels):
        if lower >= higher:
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


def limits_of(
    part: Block, mode: Mode = "enforce", modes: Mapping[str, Mode] | None = None
) -> ExtendedLimits:
    """What a part without issues comes to.

    Args:
        mode: of detectors of which the part says nothing.
        modes: of single detectors, where the part says nothing of them.
    """
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
        mode=part.get(MODE, mode),
        patience=part.get(PATIENCE, 1.0),
        detectors=_with_modes(_settings_of(part.get(DETECTORS) or {}), modes or {}),
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


def _with_modes(settings: dict[str, Setting], modes: Mapping[str, Mode]) -> dict[str, Setting]:
    for name in modes.keys() & by_name().keys():
        own = settings.get(name, Setting())
        settings[name] = Setting(own.mode or modes[name], own.values)
    return settings


def by_name() -> Mapping[str, Detector]:
    """Detectors by name; two that share one have the same parameters."""
    return {detector.name: detector for detector in detectors()}


def camel(name: str) -> str:
    """A parameter's name as it is written in settings."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _as_block(value: object) -> Block | None:
    return value if isinstance(value, Mapping) else None
