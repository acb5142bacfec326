from hypothesis import given
from hypothesis import strategies as st

from loopstream.events import Action, Level, Target, Verdict
from loopstream.sdk.standing import (
    MAX_IDS,
    MAX_TARGETS,
    MAX_WARNINGS,
    Standing,
    is_refusal,
    is_warning,
)

from .fakes import about, on_signature, verdict

A, B = "exec:aa", "exec:bb"
TARGETS = [
    Target(signature=A),
    Target(signature=B),
    Target(tool="exec"),
    Target(tool="exec", exclude=(A,)),
    Target(tool="read"),
]
acts = st.tuples(
    st.sampled_from([Action.BLOCK, Action.RELEASE]),
    st.lists(st.sampled_from(TARGETS), max_size=3),
    st.booleans(),
    st.booleans(),
)


@given(st.lists(acts, max_size=30))
def test_what_stands_is_the_fold_of_blocks_and_releases(
    steps: list[tuple[Action, list[Target], bool, bool]],
) -> None:
    standing, expected = Standing(), dict[Target, Verdict]()
    for action, targets, shadow, twice in steps:
        said = verdict(action, applies_to=tuple(targets), mode="shadow" if shadow else "enforce")
        for _ in range(1 + twice):
            standing.apply(said)
        for target in () if shadow else targets:
            expected.pop(target, None)
            if action is Action.BLOCK:
                expected[target] = said
    assert standing.blocks == expected
    for tool, signature in (("exec", A), ("exec", B), ("exec", "exec:cc"), ("read", "read:aa")):
        covering = [v for t, v in expected.items() if t.covers(tool, signature)]
        assert (standing.block_on(tool, signature) is None) is (not covering)
        assert standing.block_on(tool, signature) in [*covering, None]


def test_each_verdict_counts_once() -> None:
    standing = Standing()
    block = verdict(Action.BLOCK, applies_to=on_signature(A))
    assert standing.apply(block) == "new"
    assert standing.apply(verdict(Action.RELEASE, applies_to=on_signature(A))) == "new"
    assert standing.apply(block) == "duplicate"
    assert standing.block_on("exec", A) is None


def test_shadow_verdicts_are_seen_and_not_obeyed() -> None:
    standing = Standing()
    for action in (Action.BLOCK, Action.ABORT, Action.WARN):
        said = verdict(action, mode="shadow", applies_to=on_signature(A))
        assert standing.apply(said) == "shadow"
        assert standing.apply(said) == "duplicate"
    assert standing.abort is None
    assert standing.block_on("exec", A) is None
    assert standing.warning_on("exec", A) is None


def test_the_first_abort_stands() -> None:
    standing = Standing()
    first = verdict(Action.ABORT)
    standing.apply(first)
    standing.apply(verdict(Action.ABORT))
    assert standing.abort is first


def test_the_call_itself_goes_before_its_tool() -> None:
    standing = Standing()
    of_call = verdict(Action.BLOCK, applies_to=on_signature(A))
    standing.apply(of_call)
    standing.apply(verdict(Action.BLOCK, applies_to=(Target(tool="exec"),)))
    assert standing.block_on("exec", A) is of_call
    assert standing.block_on("exec", B) is not None


def test_a_warning_is_handed_out_once_and_to_its_call() -> None:
    standing = Standing()
    standing.remember("e-1", "exec", A)
    warn = verdict(Action.WARN, evidence=about("e-1"))
    standing.apply(warn)
    assert standing.warning_on("exec", B) is None
    assert standing.warning_on("exec", A) is warn
    assert standing.warning_on("exec", A) is None
    standing.apply(warn)
    assert standing.warning_on("exec", A) is None


def test_a_warning_on_an_unknown_call_goes_by_target_then_by_tool() -> None:
    standing = Standing()
    targeted = verdict(Action.WARN, applies_to=on_signature(B))
    standing.apply(targeted)
    assert standing.warning_on("exec", A) is None
    assert standing.warning_on("exec", B) is targeted
    by_tool = verdict(Action.WARN)
    standing.apply(by_tool)
    assert standing.warning_on("read", "read:aa") is None
    assert standing.warning_on("exec", A) is by_tool


def test_what_an_answer_said_is_not_said_again() -> None:
    standing = Standing()
    standing.remember("e-1", "exec", A)
    standing.apply(verdict(Action.WARN, evidence=about("e-1")))
    standing.told("e-1")
    assert standing.warning_on("exec", A) is None
    standing.apply(verdict(Action.WARN, evidence=about("e-1")))
    assert standing.warning_on("exec", A) is None


def test_memory_is_bounded() -> None:
    standing = Standing()
    for n in range(MAX_TARGETS + 5):
        standing.apply(verdict(Action.BLOCK, applies_to=on_signature(f"exec:{n}")))
        standing.apply(verdict(Action.WARN))
        standing.remember(f"e-{n}", "exec", A)
    assert len(standing.blocks) == MAX_TARGETS
    assert standing.evicted == 5
    assert standing.block_on("exec", "exec:4") is None
    assert standing.block_on("exec", "exec:5") is not None
    assert len(standing._ids) == MAX_IDS
    assert len(standing._warnings) == MAX_WARNINGS


def test_answers() -> None:
    critical = verdict(Action.ANSWER)
    assert is_refusal(critical)
    assert not is_refusal(verdict(Action.ANSWER, mode="shadow"))
    warning = verdict(Action.ANSWER, level=Level.WARNING)
    assert is_warning(warning)
    assert not is_refusal(warning)
    assert not is_warning(verdict(Action.ANSWER, level=Level.NONE))
