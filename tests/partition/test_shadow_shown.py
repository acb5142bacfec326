"""What was only published is counted apart from what was acted on, in every profile and mode."""

from __future__ import annotations

import json
from typing import Any

import pytest

from loopstream.cli.runs_table import told
from loopstream.events.summary import RunSummary
from loopstream.policy.deployment import Deployment, Mode, Profile
from tests.partition.driver import Feed
from tests.partition.test_orders_told import PROFILES, stuck

_ACTIONS = {"warn", "block", "abort"}


def shown(profile: Profile, mode: Mode, block: dict[str, Any]) -> tuple[RunSummary, Feed]:
    feed = Feed(
        deployment=Deployment("test", profile=profile, mode=mode),
        settings={"enabled": True, **block},
    )
    for event in stuck():
        feed.feed(event)
        feed.checkpoint()
        feed.partition.summaries()
    feed.restart()
    feed.feed(*stuck(1, first=99)[:1])
    feed.checkpoint()
    ((_, summary),) = feed.partition.summaries()
    return RunSummary.model_validate_json(json.dumps(summary)), feed


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("mode", ["enforce", "shadow"])
@pytest.mark.parametrize("block", [{}, {"mode": "shadow"}, {"modes": {"generic_repeat": "shadow"}}])
def test_shadow_verdicts_are_counted_and_nothing_else(
    profile: Profile, mode: Mode, block: dict[str, Any]
) -> None:
    feed = Feed(
        deployment=Deployment("test", profile=profile, mode=mode),
        settings={"enabled": True, **block},
    )
    feed.feed(*stuck())
    feed.checkpoint()
    ((_, fields),) = feed.partition.summaries()
    summary = RunSummary.model_validate_json(json.dumps(fields))
    asked = [v for _, v in feed.partition.verdicts if v.action.value in _ACTIONS]
    assert summary.shadow == sum(v.mode == "shadow" for v in asked)
    acted = [v.action.value for v in asked if v.mode == "enforce"]
    assert summary.warnings == acted.count("warn")
    assert (summary.blocks > 0) <= ("block" in acted)
    assert summary.profile == profile
    assert summary.mode == (None if mode == "enforce" else "shadow")
    if mode == "shadow":
        assert told(fields)["status"].endswith(" (shadow)")
    else:
        assert "shadow" not in told(fields)["status"]
        assert bool(summary.standing) is ("block" in acted)


def test_the_count_outlives_the_worker() -> None:
    summary, feed = shown("documented", "enforce", {"mode": "shadow"})
    asked = [v for _, v in feed.partition.verdicts if v.mode == "shadow"]
    assert summary.shadow > len(asked) > 0
