from __future__ import annotations

import json

import pytest

from benchmarks.stepping.mixes import MIXES
from benchmarks.stepping.population import row_of
from loopstream.events.summary import RunSummary
from loopstream.policy.deployment import Deployment
from loopstream.policy.summary import summary_of
from loopstream.state.pack import unpack


@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("deployment", [None, Deployment("p", mode="shadow")])
def test_what_is_made_without_validation_is_valid(mix: str, deployment: Deployment | None) -> None:
    fields = summary_of(unpack("run-1", row_of(mix)), deployment)
    summary = RunSummary.model_validate_json(json.dumps(fields))
    assert summary.model_dump(mode="json", exclude_none=True) == fields
    assert [*fields] == [name for name in RunSummary.model_fields if name in fields]
