"""What docs/reference/wire.md says is enough to write a client in any language."""

from __future__ import annotations

import ast
import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import foreign_client
from tests.e2e.foreign_client import ForeignRun, RunAbortedError
from tests.e2e.house import PATIENCE_S, House, open_house, wait_for
from tests.e2e.play import name

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]

BLOCKS = {"enabled": True, "warningThreshold": 3, "criticalThreshold": 6}
ARGS = {"path": "größe.txt", "at": 1}
RESULT = {"content": [{"type": "text", "text": "nothing new"}], "details": {"size": 7}}


@pytest.fixture(scope="module", params=["json", "msgpack"])
def house(
    request: pytest.FixtureRequest, bootstrap: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[House]:
    form = request.param
    folder, values = tmp_path_factory.mktemp(form), {"worker.verdict_format": form}
    with open_house(bootstrap, f"f{name()[4:12]}", folder, blocks=BLOCKS, values=values) as opened:
        yield opened


@contextlib.contextmanager
def foreign(house: House, run: str, epoch: int = 1, **how: Any) -> Iterator[ForeignRun]:
    client = ForeignRun(house.bootstrap, house.prefix, run, "stranger", epoch=epoch, **how)
    try:
        yield client
    finally:
        client.close()


def loop(run: ForeignRun, times: int, tool: str = "read", **outcome: Any) -> None:
    for _ in range(times):
        assert run.before(tool, ARGS) is None
        run.after(tool, ARGS, **(outcome or {"result": RESULT}))


def hears(run: ForeignRun, what: str) -> None:
    """Wait until a client has heard something of a kind: an attribute of it."""

    def heard() -> bool:
        run.listen()
        return bool(getattr(run, what))

    wait_for(f"the client hears {what}", heard)


def test_it_uses_nothing_of_ours() -> None:
    tree = ast.parse(Path(foreign_client.__file__).read_text())
    modules = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else names(node))
    }
    assert modules <= {
        *("__future__", "collections", "hashlib", "hmac", "json", "time", "typing"),
        *("kafka", "msgpack"),
    }


def names(node: ast.Import) -> list[str]:
    return [alias.name for alias in node.names]


@pytest.mark.parametrize("digests", [False, True], ids=["raw", "digests"])
def test_it_is_warned_and_blocked(house: House, digests: bool) -> None:
    with foreign(house, name(), digests=digests) as run:
        loop(run, 6)
        hears(run, "refused_by")
        assert [w["count"] for w in run.warnings] == [3]
        reason = run.before("read", ARGS)
        assert reason is not None
        assert "6" in reason
        assert run.before("read", {"path": "other"}) is None
        run.end()


@pytest.mark.parametrize("digests", [False, True], ids=["raw", "digests"])
def test_errors_count_too(house: House, digests: bool) -> None:
    with foreign(house, name(), digests=digests) as run:
        loop(run, 6, error="no such file")
        hears(run, "refused_by")
        assert run.before("read", ARGS) is not None


def test_raw_values_and_digests_of_them_are_the_same_call(house: House) -> None:
    run_id = name()
    with foreign(house, run_id, epoch=1) as raw:
        loop(raw, 3)
        loop(raw, 3, tool="send", error="no such file")
    with foreign(house, run_id, epoch=2, digests=True) as run:
        loop(run, 3)
        loop(run, 3, tool="send", error="no such file")

        def both() -> bool:
            run.listen()
            return len(run.refused_by) == 2

        wait_for("both are blocked", both)
    house.settle()
    assert house.dead_letters() == []


def test_a_tool_that_does_not_exist_is_refused_with_any_arguments(house: House) -> None:
    with foreign(house, name()) as run:
        for number in range(10):
            assert run.before("jira", {"ticket": number}) is None
            run.after("jira", {"ticket": number}, error="unknown tool: jira")
        hears(run, "refused_by")
        assert run.before("jira", {"ticket": 11}) is not None
        assert run.before("read", {"ticket": 11}) is None


def test_it_waits_at_a_gate(house: House) -> None:
    with foreign(house, name()) as run:
        levels = []
        for _ in range(7):
            answer = run.ask("read", ARGS, PATIENCE_S)
            levels.append(answer["level"])
            if answer["level"] != "critical":
                run.after("read", ARGS, result=RESULT)
        assert levels == ["none"] * 3 + ["warning"] + ["none"] * 2 + ["critical"]


def test_it_is_aborted(house: House) -> None:
    with foreign(house, name()) as run:
        run.compacted()
        loop(run, 3)
        hears(run, "abort")
        with pytest.raises(RunAbortedError):
            run.before("read", {"path": "anything"})


def test_it_takes_a_run_up_again(house: House) -> None:
    run_id = name()
    with foreign(house, run_id, epoch=1) as run:
        loop(run, 6)
        hears(run, "refused_by")
    with foreign(house, run_id, epoch=int(time.time()), resumed=True) as run:
        hears(run, "refused_by")
        assert run.before("read", ARGS) is not None
