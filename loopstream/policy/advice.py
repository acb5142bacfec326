"""What an operator should know about a settings block before it is in force.

Nothing here changes what a block means (`policy.settings` decides that): a block with notes is
taken all the same. `settings.refuse` names what is not taken at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import Final

from loopstream.detect.limits import Limits
from loopstream.policy.deployment import Profile
from loopstream.policy.rollout import BY_DETECTOR, MODE
from loopstream.policy.settings import (
    BREAKER,
    CRITICAL,
    DEFAULT_WINDOW,
    DETECTORS,
    ENABLED,
    EXTENDED,
    GUARD,
    HISTORY,
    KEYS,
    NUMBERS,
    SECTIONS,
    SWITCHED,
    UNKNOWN_TOOL,
    WARNING,
    WINDOW,
    Block,
    as_block,
    as_section,
    resolve,
    whole,
)

MAX_SHOWN: Final = 40


class NoteKind(StrEnum):
    """Why a setting does not do what it seems to say."""

    UNKNOWN_KEY = "unknown_key"
    IGNORED = "ignored"
    CLAMPED = "clamped"
    NEVER_FIRES = "never_fires"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Note:
    """One remark about one setting: its path within the block, and a sentence."""

    kind: NoteKind
    path: str
    text: str
    mistake: bool = False
    """Whether it can't be meant: a name that there is not, or a value that is not used."""


def explain(block: Block | None, profile: Profile | None = None) -> list[Note]:
    """All remarks about a block as it would be resolved; for an agent, give the merged one.

    Args:
        profile: the deployment's; None: it is not known, and what depends on it is not remarked.
    """
    block = block or {}
    limits = resolve(block)
    notes = [*_unknown_keys(block), *_ignored(block), *_without_effect(block, profile)]
    if profile in {None, "documented"}:
        notes += [*_clamped(block, limits), *_never_fires(limits)]
    return [*notes, *_off(limits)]


def _without_effect(block: Block, profile: Profile | None) -> Iterator[Note]:
    """Settings that are right, and meant for another profile than the deployment's."""
    if profile is None:
        return
    own = {"documented": (EXTENDED,), "extended": (*NUMBERS, DETECTORS)}
    for key in own.get(profile, (EXTENDED, *NUMBERS, DETECTORS)):
        if key in block:
            meant = "extended" if key == EXTENDED else "documented"
            text = f"{key} has no effect: the profile is {profile}, and it counts with {meant}"
            yield Note(NoteKind.IGNORED, key, text)


def _unknown_keys(block: Block) -> Iterator[Note]:
    for path, name, allowed in _named_keys(block):
        if name not in allowed:
            text = f"{path} is no setting{_near(name, allowed)}; it is ignored"
            yield Note(NoteKind.UNKNOWN_KEY, path, text, mistake=True)


def _near(name: str, allowed: Iterable[str]) -> str:
    by_lower = {known.lower(): known for known in allowed}
    near = get_close_matches(name[:MAX_SHOWN].lower(), by_lower, n=1)
    return f" (did you mean {by_lower[near[0]]}?)" if near else ""


def _named_keys(block: Block) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for key in block:
        # These are refused if anything is wrong with them.
        if key not in (EXTENDED, MODE, BY_DETECTOR):
            yield key, key, KEYS
    for section, allowed in SECTIONS.items():
        for name in as_section(block, section):
            yield f"{section}.{name}", name, allowed


def _ignored(block: Block) -> Iterator[Note]:
    if ENABLED in block and not isinstance(block[ENABLED], bool):
        yield _not_used(ENABLED, block[ENABLED], "not true or false", "detection stays off")
    for key, default in NUMBERS.items():
        if key in block and whole(block[key]) is None:
            yield _not_used(key, block[key], "no whole number above zero", f"{default} applies")
    for section, allowed in SECTIONS.items():
        yield from _ignored_in(block, section, allowed)
    switches, modes = as_section(block, DETECTORS), as_section(block, BY_DETECTOR)
    for name, switch in SWITCHED.items():
        if switches.get(switch) is False and modes.get(name, "off") != "off":
            text = f"{DETECTORS}.{switch} is false: {BY_DETECTOR}.{name} has no effect"
            yield Note(NoteKind.IGNORED, f"{BY_DETECTOR}.{name}", text)


def _ignored_in(block: Block, section: str, allowed: tuple[str, ...]) -> Iterator[Note]:
    if section in block and as_block(block[section]) is None:
        yield _not_used(section, block[section], "no object", "its defaults apply")
    for name, value in as_section(block, section).items():
        path = f"{section}.{name}"
        if name == WINDOW and name in allowed and whole(value) is None:
            effect = f"{DEFAULT_WINDOW} applies"
            yield _not_used(path, value, "no whole number above zero", effect)
        elif name != WINDOW and name in allowed and not isinstance(value, bool):
            yield _not_used(path, value, "not true or false", "the detector stays on")


def _not_used(path: str, value: object, why: str, effect: str) -> Note:
    text = f"{path} {_shown(value)} is {why}: {effect}"
    return Note(NoteKind.IGNORED, path, text, mistake=True)


def _shown(value: object) -> str:
    if isinstance(value, Mapping | list):
        return "(an object)" if isinstance(value, Mapping) else "(a list)"
    text = json.dumps(value)
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"


def _clamped(block: Block, limits: Limits) -> Iterator[Note]:
    for key, used, below, floor in (
        (CRITICAL, limits.critical, WARNING, limits.warning),
        (BREAKER, limits.breaker, CRITICAL, limits.critical),
    ):
        given = whole(block.get(key))
        wanted = given or NUMBERS[key]
        if wanted != used:
            origin = "" if given else " (the default)"
            text = f"{key} {wanted}{origin} becomes {used}: must be above {below} {floor}"
            yield Note(NoteKind.CLAMPED, key, text)


def _never_fires(limits: Limits) -> Iterator[Note]:
    # Counts are of records in the history, which holds no more than historySize. Ping-pong counts
    # the judged call too, and so reaches one more.
    size = limits.history_size
    for key, threshold, effect in (
        (WARNING, limits.warning, "no repeat is ever warned of"),
        (CRITICAL, limits.critical, "no repeat is ever blocked"),
        (UNKNOWN_TOOL, limits.unknown_tool, "no unknown tool is ever blocked"),
        (BREAKER, limits.breaker, "the global circuit breaker never opens"),
    ):
        if threshold > size:
            text = f"{key} {threshold} is above {HISTORY} {size}: {effect}"
            yield Note(NoteKind.NEVER_FIRES, key, text)


def _off(limits: Limits) -> Iterator[Note]:
    if not limits.enabled:
        guard = "the post-compaction guard alone is on" if limits.guard else f"so is {GUARD}"
        yield Note(NoteKind.OFF, ENABLED, f"detection is off ({ENABLED} is not true); {guard}")
