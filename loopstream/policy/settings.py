"""Detector settings: from the documented JSON blocks to the limits in force.

A *block* is what stands under ``tools.loopDetection``: for everyone, or for one agent. The two are
merged, then resolved. Rules and names: SEMANTICS section 7, "Settings"; section 10 for the profile
``reference-2026-9``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeGuard

from loopstream.detect.base import DetectorName
from loopstream.detect.limits import Limits
from loopstream.detect.profiles import PROFILES
from loopstream.detect.rollout import Rollout
from loopstream.policy.extended_part import issues
from loopstream.policy.rollout import BY_DETECTOR, mode_issues, modes_of

HISTORY: Final = "historySize"
WARNING: Final = "warningThreshold"
CRITICAL: Final = "criticalThreshold"
UNKNOWN_TOOL: Final = "unknownToolThreshold"
BREAKER: Final = "globalCircuitBreakerThreshold"
ENABLED: Final = "enabled"
DETECTORS: Final = "detectors"
GUARD: Final = "postCompactionGuard"
# Profile ``extended`` has its own part of a block (policy/extended_settings.py).
EXTENDED: Final = "extended"
WINDOW: Final = "windowSize"

# In the order in which the documented settings list them.
NUMBERS: Final[Mapping[str, int]] = {
    HISTORY: 30,
    WARNING: 10,
    UNKNOWN_TOOL: 10,
    CRITICAL: 20,
    BREAKER: 30,
}
SWITCHES: Final = ("genericRepeat", "knownPollNoProgress", "pingPong")
DEFAULT_WINDOW: Final = 3
SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {DETECTORS: SWITCHES, GUARD: (WINDOW,)}
KEYS: Final = (ENABLED, *NUMBERS, DETECTORS, GUARD)
# Detectors that a documented switch can turn off.
SWITCHED: Final[Mapping[str, str]] = {
    DetectorName.GENERIC_REPEAT: "genericRepeat",
    DetectorName.KNOWN_POLL: "knownPollNoProgress",
    DetectorName.PING_PONG: "pingPong",
}

# A run's row holds its whole history and guard window, and must fit into one changelog record.
MAX_HISTORY: Final = 10_000
MAX_WINDOW: Final = 1_000

Block = Mapping[str, Any]


def merge(global_block: object, agent_block: object) -> dict[str, Any] | None:
    """Lay an agent's block over the global one; a null in the agent's hides the global value.

    Returns:
        The overlay; the only block as it is if there is no other; None without any.
    """
    over, under = as_block(agent_block), as_block(global_block)
    if over is None or under is None:
        only = under if over is None else over
        return None if only is None else dict(only)
    merged = {**under, **over}
    for section in SECTIONS:
        merged[section] = {**as_section(under, section), **as_section(over, section)}
    for part in (EXTENDED, BY_DETECTOR):
        if part in merged:
            merged[part] = merge_deep(under.get(part), over.get(part))
    return merged


def merge_deep(under: Any, over: Any) -> Any:
    """Two parts merged field by field at every depth; a null or absent one hides nothing."""
    if not isinstance(under, Mapping) or not isinstance(over, Mapping):
        return under if over is None else over
    fields = {**under, **over}
    return {key: merge_deep(under.get(key), over.get(key)) for key in fields}


def judges_of(profile: str) -> tuple[str, ...]:
    """Names of the detectors that judge calls under a documented profile, in order."""
    return tuple(dict.fromkeys(detector.name.value for detector in PROFILES[profile].detectors))


def resolve(block: Block | None, judges: Iterable[str] = judges_of("documented")) -> Limits:
    """The limits in force under profile ``documented``: defaults filled in, thresholds clamped.

    Args:
        judges: detectors whose modes count, beside the guard's.
    """
    block = block or {}
    numbers = {key: whole(block.get(key)) or default for key, default in NUMBERS.items()}
    critical = max(numbers[CRITICAL], numbers[WARNING] + 1)
    detectors = as_section(block, DETECTORS)
    limits = Limits(
        enabled=block.get(ENABLED) is True,
        entered=block.get(ENABLED) is not False,
        history_size=numbers[HISTORY],
        warning=numbers[WARNING],
        critical=critical,
        unknown_tool=numbers[UNKNOWN_TOOL],
        breaker=max(numbers[BREAKER], critical + 1),
        generic_repeat=detectors.get("genericRepeat") is not False,
        known_poll=detectors.get("knownPollNoProgress") is not False,
        ping_pong=detectors.get("pingPong") is not False,
        guard=block.get(ENABLED) is not False,
        guard_window=whole(as_section(block, GUARD).get(WINDOW)) or DEFAULT_WINDOW,
    )
    return _named(_rolled_out(limits, block, judges))


def resolve_reference(block: Block | None) -> Limits:
    """The limits in force under profile ``reference-2026-9``: only ``enabled`` is read, and modes.

    Calls enter the history only if it is literally true; the guard is off only if it is
    literally false.
    """
    block = block or {}
    enabled = block.get(ENABLED)
    on = enabled is True
    limits = Limits(enabled=on, entered=on, guard=enabled is not False)
    return _named(_rolled_out(limits, block, judges_of("reference-2026-9")))


def _rolled_out(limits: Limits, block: Block, judges: Iterable[str]) -> Limits:
    """Limits with the block's modes. What is off is off as if it were switched off."""
    modes = modes_of(block, (*judges, DetectorName.GUARD.value))
    if set(modes.values()) == {"enforce"}:
        return limits
    guard_mode = modes.pop(DetectorName.GUARD)
    off = {name for name, mode in modes.items() if mode == "off" and name in SWITCHED}
    off |= {name for name in modes if not switched_on(limits, name)}
    guard = limits.guard and guard_mode != "off"
    return replace(
        limits,
        generic_repeat=limits.generic_repeat and DetectorName.GENERIC_REPEAT not in off,
        known_poll=limits.known_poll and DetectorName.KNOWN_POLL not in off,
        ping_pong=limits.ping_pong and DetectorName.PING_PONG not in off,
        guard=guard,
        guard_mode=guard_mode if guard else "enforce",
        rollout=Rollout.of({name: mode for name, mode in modes.items() if name not in off}),
    )


def switched_on(limits: Limits, detector: str) -> bool:
    """Whether a detector is not switched off by its documented switch."""
    if detector == DetectorName.GENERIC_REPEAT:
        return limits.generic_repeat
    if detector == DetectorName.KNOWN_POLL:
        return limits.known_poll
    return limits.ping_pong if detector == DetectorName.PING_PONG else True


def resolved_view(limits: Limits) -> dict[str, Any]:
    """Limits in the documented shape: ``resolved`` and ``guard`` as in the shared vectors.

    ``modes`` is ours: the detectors that are not enforced; absent where all are.
    """
    resolved = {
        ENABLED: limits.enabled,
        HISTORY: limits.history_size,
        WARNING: limits.warning,
        UNKNOWN_TOOL: limits.unknown_tool,
        CRITICAL: limits.critical,
        BREAKER: limits.breaker,
        DETECTORS: {
            "genericRepeat": limits.generic_repeat,
            "knownPollNoProgress": limits.known_poll,
            "pingPong": limits.ping_pong,
        },
    }
    guard = {ENABLED: limits.guard, WINDOW: limits.guard_window}
    modes = {} if limits.rollout is None else dict(limits.rollout.modes)
    if limits.guard_mode != "enforce":
        modes[DetectorName.GUARD.value] = limits.guard_mode
    view = {"resolved": resolved, "guard": guard}
    return {**view, BY_DETECTOR: modes} if modes else view


def refuse(block: object) -> str | None:
    """Why a worker must not take a block at all, in one sentence; None: it may."""
    given = as_block(block)
    if given is None:
        return "a settings block is a JSON object"
    if (whole(given.get(HISTORY)) or 0) > MAX_HISTORY:
        return f"{HISTORY} is above {MAX_HISTORY}: a run's record would not fit"
    if (whole(as_section(given, GUARD).get(WINDOW)) or 0) > MAX_WINDOW:
        return f"{GUARD}.{WINDOW} is above {MAX_WINDOW}: a run's record would not fit"
    if (why := next(mode_issues(given), None)) is not None:
        return why
    return next(issues(given[EXTENDED]), None) if EXTENDED in given else None


def strict_issues(block: object) -> list[str]:
    """What the reference's file validation says of one block, as ``kind:path``; empty: valid.

    Stricter than the runtime, which uses the default instead. An absent block is valid.
    """
    if block is None:
        return []
    given = as_block(block)
    if given is None:
        return ["type:"]
    issues = [issue for key in given for issue in _issues_of(key, given[key])]
    for lower, upper in ((WARNING, CRITICAL), (CRITICAL, BREAKER)):
        floor, value = whole(given.get(lower)), whole(given.get(upper))
        if floor and value and value <= floor:
            issues.append(f"order:{upper}")
    return issues


def as_block(value: object) -> Block | None:
    """The value if it is a JSON object, else None."""
    return value if isinstance(value, Mapping) else None


def as_section(block: Block, section: str) -> Block:
    """``detectors`` or ``postCompactionGuard`` of a block; empty if absent or not an object."""
    return as_block(block.get(section)) or {}


def whole(value: object) -> int | None:
    """The value if it is a whole number above zero (``3.0`` is), else None."""
    return int(value) if _is_whole(value) and value > 0 else None


def _is_whole(value: object) -> TypeGuard[int | float]:
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


def _issues_of(key: str, value: object) -> list[str]:
    if key in SECTIONS:
        section = as_block(value)
        if section is None:
            return [f"type:{key}"]
        allowed = SECTIONS[key]
        return [i for name, v in section.items() for i in _leaf(f"{key}.{name}", name, v, allowed)]
    return _leaf(key, key, value, KEYS)


def _leaf(path: str, name: str, value: object, allowed: tuple[str, ...]) -> list[str]:
    if name not in allowed:
        return [f"unknown-key:{path}"]
    if name == ENABLED or name in SWITCHES:
        return [] if isinstance(value, bool) else [f"type:{path}"]
    if whole(value):
        return []
    return [f"not-positive:{path}" if _is_whole(value) else f"type:{path}"]


def _named(limits: Limits) -> Limits:
    text = json.dumps(resolved_view(limits), sort_keys=True, separators=(",", ":"))
    return replace(limits, digest=hashlib.sha256(text.encode()).hexdigest()[:16])
