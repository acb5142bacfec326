"""Rollout modes in a settings block: ``mode`` for all detectors, ``modes`` for single ones.

They are ours, beside the documented settings: who rolls out a detector wants to see what it would
do (``shadow``), then to hear of it (``warn``), before anything is refused (``enforce``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

from loopstream.detect.base import DetectorName
from loopstream.detect.rollout import MODES, Mode
from loopstream.policy.extended_part import by_name

MODE: Final = "mode"
BY_DETECTOR: Final = "modes"
_SHOWN: Final = 40

Block = Mapping[str, Any]


def mode_issues(block: Block) -> Iterator[str]:
    """What is wrong with a block's modes, as sentences that name the path; none: nothing.

    A misspelt detector must not go unnoticed: it would be enforced.
    """
    if MODE in block and block[MODE] not in MODES:
        yield f"{MODE} is none of {', '.join(MODES)}"
    if BY_DETECTOR not in block:
        return
    given = block[BY_DETECTOR]
    if not isinstance(given, Mapping):
        yield f"{BY_DETECTOR} is no object"
        return
    for name, mode in given.items():
        path = f"{BY_DETECTOR}.{name[:_SHOWN]}"
        if name not in known():
            yield f"{path} is no detector: see `loopstream detectors`"
        elif mode not in MODES:
            yield f"{path} is none of {', '.join(MODES)}"


def known() -> set[str]:
    """Names of all detectors, of every profile."""
    return {name.value for name in DetectorName} | set(by_name())


def default_mode(block: Block) -> Mode:
    """The mode of detectors of which nothing else is said."""
    mode = block.get(MODE)
    return cast("Mode", mode) if mode in MODES else "enforce"


def modes_of(block: Block, names: Iterable[str]) -> dict[str, Mode]:
    """The mode of each detector; what makes no sense counts as absent."""
    default, given = default_mode(block), single_modes(block)
    return {name: given.get(name, default) for name in names}


def single_modes(block: Block) -> dict[str, Mode]:
    """The modes that are given for single detectors."""
    given = block.get(BY_DETECTOR)
    pairs = given.items() if isinstance(given, Mapping) else ()
    return {name: cast("Mode", mode) for name, mode in pairs if mode in MODES}
