"""What holds for every run: the forecast, the framing, the row."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopstream.events import Action, CallFingerprint, Target, ToolCall, Verdict
from loopstream.events.tool import ExtendedCall
from loopstream.policy.verdicts import Position
from loopstream.scenarios import Player
from loopstream.state.pack import pack, unpack
from loopstream.state.run import RunState
from tests.extended.strategies import Event, runs

pytestmark = pytest.mark.slow

LAWS = settings(max_examples=40, deadline=None)


class Runner:
    """What a runner refuses by itself, from nothing but the verdicts that were published."""

    def __init__(self) -> None:
        self.blocks: set[Target] = set()

    def hear(self, verdicts: list[Verdict]) -> None:
        for verdict in verdicts:
            if verdict.mode == "shadow":
                continue
            if verdict.action is Action.BLOCK:
                self.blocks |= set(verdict.applies_to)
            elif verdict.action is Action.RELEASE:
                self.blocks -= set(verdict.applies_to)

    def refuses(self, tool: str, signature: str) -> bool:
        return any(target.covers(tool, signature) for target in self.blocks)


def ask(player: Player, state: RunState, tool: str, digest: bytes) -> bool:
    """Whether a waiting call would be refused, asked of a copy of the state."""
    copy = unpack(state.scope, pack(state))
    event = ToolCall.model_construct(
        v=1,
        type="tool_call",
        id="probe",
        run="r",
        time=copy.extended.time if copy.extended else 0,
        tool=tool,
        call_id="probe",
        disposition="gated",
        batch=None,
        fp=CallFingerprint(extended=ExtendedCall(args=digest)),
    )
    said = player._engine.step(copy, event, player._limits, Position(0, 10**6, 0, 10**9)).verdicts
    answer = next(verdict for verdict in said if verdict.action is Action.ANSWER)
    return answer.level.value == "critical"


MODES = st.sampled_from(("off", "shadow", "warn", "enforce"))
BLOCKS: st.SearchStrategy[dict[str, Any]] = st.just({}) | st.fixed_dictionaries(
    {
        "mode": MODES,
        "modes": st.dictionaries(st.sampled_from(("generic_repeat", "cycle", "send_storm")), MODES),
    }
)


@LAWS
@given(runs, BLOCKS)
def test_a_runner_refuses_exactly_what_would_be_judged_critical(
    events: list[Event], block: dict[str, Any]
) -> None:
    player, runner = Player("extended", block), Runner()
    for number, event in enumerate(events):
        runner.hear(player.play(event))
        if number % 7:
            continue
        state = player.state("r")
        assert state.extended is not None
        for call in list(state.extended.calls.values()):
            digest = bytes.fromhex(call.signature[-64:])
            wanted = runner.refuses(call.tool.name, call.signature)
            assert ask(player, state, call.tool.name, digest) == wanted
        for tool in list(state.extended.tools):
            unseen = bytes(32)
            wanted = runner.refuses(tool, f"{tool}:{unseen.hex()}")
            assert ask(player, state, tool, unseen) == wanted


@LAWS
@given(runs, st.integers(1, 5))
def test_a_row_in_between_changes_nothing(events: list[Event], every: int) -> None:
    """The framing law, and replay's: wherever a checkpoint falls, the same verdicts follow."""
    steady, broken = Player("extended"), Player("extended")
    for number, event in enumerate(events):
        said = [verdict.model_dump() for verdict in steady.play(event)]
        if number % every == 0 and "r" in broken._runs:
            row = pack(broken._runs["r"])
            broken._runs["r"] = unpack("r", row)
            assert pack(broken._runs["r"]) == row
        assert [verdict.model_dump() for verdict in broken.play(event)] == said
    assert pack(steady.state("r")) == pack(unpack("r", pack(steady.state("r"))))


@LAWS
@given(runs)
def test_verdicts_are_numbered_and_named_uniquely(events: list[Event]) -> None:
    player = Player("extended")
    for event in events:
        player.play(event)
    verdicts = [verdict for _, verdict in player.verdicts]
    assert [verdict.seq for verdict in verdicts] == list(range(1, len(verdicts) + 1))
    assert len({verdict.id for verdict in verdicts}) == len(verdicts)


def played(steps: list[tuple[str, Any, str]]) -> int:
    player = Player("extended")
    for number, (tool, args, result) in enumerate(steps):
        call = {"run": "r", "tool": tool, "args": args, "call_id": f"c{number}"}
        player.play({"op": "call", **call})
        player.play({"op": "outcome", **call, "result": result})
    return len(pack(player.state("r")))


def test_rows_are_small() -> None:
    assert played([("exec", {"command": "ls -l"}, "same")] * 300) <= 1_500
    assert played([(f"t{n % 4}", {"n": n % 4}, f"same {n % 4}") for n in range(300)]) <= 2_500
    different = [(("read", "exec", "grep")[n % 3], {"path": f"f{n}"}, f"t{n}") for n in range(30)]
    assert played(different) <= 4_000


def test_the_largest_row_fits() -> None:
    block = {"extended": {"historySize": 1000}}
    player = Player("extended", block)
    for number in range(1_100):
        tool = f"{number:04d}" + "t" * 124
        args = {f"k{n}": f"{number}-{n}" for n in range(20)}
        call_id = f"{number:04d}" + "c" * 124
        player.play({"op": "call", "run": "r", "tool": tool, "args": args, "call_id": call_id})
    assert len(pack(player.state("r"))) <= 900_000
