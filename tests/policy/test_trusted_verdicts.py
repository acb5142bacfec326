"""Verdicts are made without validation: they must be what validation would have made."""

from __future__ import annotations

import pytest

from loopstream.detect.limits import Limits
from loopstream.events import Action, Level, Verdict
from loopstream.policy.deployment import Deployment
from loopstream.policy.verdicts import Decision, Position, Trigger, publish
from loopstream.state.run import RunState, Standing, Target
from loopstream.wire.verdicts import Format, decode_verdict, encode_model

TARGETS = (
    Target(signature="exec:" + "a" * 64),
    Target(tool="exec", exclude=("exec:" + "b" * 64,)),
    None,
)


def _published(action: Action, target: Target | None) -> Verdict:
    state = RunState("run", 3)
    state.run, state.agent = "run", "coder"
    state.history.enter("exec", "exec:" + "a" * 64, poll=False, offset=7)
    standing = Standing("generic_repeat", 20, 20, "generic:key", "exec", "read")
    decision = Decision(action, Level.CRITICAL, standing, "because", target)
    trigger = Trigger("event", 5, Position(3, 9, 0, 1000), "call", "00-trace")
    return publish(Deployment("t"), state, Limits(digest="d"), trigger, decision)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("action", list(Action))
def test_a_published_verdict_is_what_validation_makes_of_it(
    action: Action, target: Target | None
) -> None:
    made = _published(action, target)
    fields = {name: getattr(made, name) for name in Verdict.model_fields}
    validated = Verdict.model_validate(fields)
    assert made == validated
    assert made.model_fields_set == set(Verdict.model_fields)


@pytest.mark.parametrize("form", ["msgpack", "json"])
@pytest.mark.parametrize("target", TARGETS)
def test_it_comes_back_equal_from_the_wire(form: Format, target: Target | None) -> None:
    made = _published(Action.BLOCK, target)
    assert decode_verdict(encode_model(made, form)) == made
