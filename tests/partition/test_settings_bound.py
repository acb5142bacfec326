"""All settings of a prefix stand in one pin, so they are bounded together."""

from __future__ import annotations

import json

from loopstream.partition.settings import MAX_SETTINGS_BYTES, SettingsInForce, bytes_of
from loopstream.wire.codec import encode_frame
from loopstream.wire.limits import MAX_RECORD_BYTES
from tests.partition.driver import Feed, Sources

BLOCK = json.dumps({"enabled": True, "note": "x" * 50_000})


def filled() -> SettingsInForce:
    """As many blocks as there is room for."""
    settings, number = SettingsInForce("documented"), 0
    while settings.put(f"agent-{number}", BLOCK) is None:
        number += 1
    return settings


def test_what_is_over_the_bound_is_refused_and_the_rest_stays() -> None:
    settings = filled()
    kept = dict(settings.blocks)
    assert bytes_of(kept) <= MAX_SETTINGS_BYTES < bytes_of(kept | {"one more": BLOCK})
    refused = settings.put("one more", BLOCK)
    assert refused is not None
    assert "settings in all" in refused
    assert settings.blocks == kept


def test_room_comes_back_with_what_is_taken_away_or_made_smaller() -> None:
    settings = filled()
    settings.put("agent-0", None)
    settings.put("agent-0", None)
    assert settings.put("one more", BLOCK) is None
    assert settings.put("agent-1", '{"enabled": true}') is None
    assert settings.put("and one", BLOCK) is None
    assert settings.put("too many", BLOCK) is not None


def test_what_was_written_down_counts() -> None:
    settings = SettingsInForce("documented", filled().blocks)
    assert settings.put("one more", BLOCK) is not None


def test_a_pin_of_all_that_fits_is_a_record_that_fits() -> None:
    sources = Sources()
    written = MAX_SETTINGS_BYTES // len(BLOCK) + 3
    for number in range(written):
        sources.push("config", f"agent-{number}", None, text=BLOCK)
    pin = Feed(sources=sources).partition.pin(0)
    assert len(encode_frame([pin])) < MAX_RECORD_BYTES
    assert 0 < len(pin.settings) < written
