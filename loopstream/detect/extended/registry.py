"""All detectors of profile ``extended``: ours, and those of other distributions.

Adding one of ours is a file and a line here. An outside one is an entry point of the group
``loopstream.detectors`` that names a class (see docs/how-to/add-a-detector.md).
"""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final, cast

from loopstream.detect.extended.base import About, Detector, Params
from loopstream.detect.extended.budget import Budget
from loopstream.detect.extended.compaction import CompactionNoGain, CompactionThrash
from loopstream.detect.extended.cycle import Cycle
from loopstream.detect.extended.failure_class import FailureClass, ServerFailures
from loopstream.detect.extended.generic_repeat import GenericRepeat
from loopstream.detect.extended.interleaved_repeat import InterleavedRepeat
from loopstream.detect.extended.known_poll import KnownPoll
from loopstream.detect.extended.message_chant import MessageChant
from loopstream.detect.extended.near_duplicate import NearDuplicate
from loopstream.detect.extended.same_result import SameResult
from loopstream.detect.extended.send_storm import SendStorm
from loopstream.detect.extended.tool_hopping import ToolHopping
from loopstream.detect.extended.unknown_tools import UnknownTools
from loopstream.detect.extended.veto_streak import VetoStreak
from loopstream.errors import SettingsError

GROUP: Final = "loopstream.detectors"

# In order: of several that speak about one call, the first is named.
BUILT_IN: Final[tuple[Detector, ...]] = (
    UnknownTools(),
    GenericRepeat(),
    KnownPoll(),
    Cycle(),
    InterleavedRepeat(),
    FailureClass(),
    ServerFailures(),
    NearDuplicate(),
    SameResult(),
    SendStorm(),
    MessageChant(),
    Budget(),
    VetoStreak(),
    ToolHopping(),
    CompactionThrash(),
    CompactionNoGain(),
)


@lru_cache(maxsize=1)
def detectors() -> tuple[Detector, ...]:
    """Every detector; outside ones after ours, by name.

    Raises:
        SettingsError: an entry point does not load, or is no detector.
    """
    points = sorted(entry_points(group=GROUP), key=lambda point: point.name)
    return (*BUILT_IN, *map(_outside, points))


def _outside(point: EntryPoint) -> Detector:
    try:
        loaded = point.load()
        made = loaded() if isinstance(loaded, type) else loaded
    except Exception as error:
        raise SettingsError(
            f"detector {point.name} does not load: {type(error).__name__} {error}.",
            where=f"entry point {point.value}",
            hint="Repair or uninstall the distribution that offers it.",
        ) from error
    ours = {detector.name for detector in BUILT_IN}
    if not _is_detector(made) or made.name in ours or made.name != point.name:
        raise SettingsError(
            f"entry point {point.name} is no detector, or its name is taken.",
            where=point.value,
            hint="See docs/how-to/add-a-detector.md for what a detector must have.",
        )
    return cast("Detector", made)


def _is_detector(made: object) -> bool:
    return (
        isinstance(getattr(made, "name", None), str)
        and isinstance(getattr(made, "about", None), About)
        and isinstance(getattr(made, "defaults", None), Params)
        and isinstance(getattr(made, "text", None), str)
        and isinstance(getattr(made, "sticky", None), bool)
        and all(callable(getattr(made, name, None)) for name in ("weigh", "aim", "variant"))
    )
