"""Real workers where events must be signed: forgers, rotation, tools."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from kafka import KafkaProducer

from loopstream.cli import run as command
from loopstream.cli.forensics import make_job, source_of, verdict_topic
from loopstream.config import load
from loopstream.errors import SettingsError
from loopstream.events import Action
from loopstream.replay.audit import Audit, audit
from loopstream.sdk import Block, Run
from loopstream.wire.keys import MasterKey
from loopstream.wire.signing import KEY_ID, SIGNER, own_headers, verdict_headers
from loopstream.wire.verdicts import encode_model
from tests.e2e.house import PARTITIONS, Fields, House, wait_for
from tests.sdk.fakes import verdict
from tests.security.signed import NEW, OLD, SignedHouse

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

METRICS = {"worker.metrics_port": "0", "log.level": "info"}
LS = {"command": "ls"}
ARGS = hashlib.sha256(b"args").digest()


@pytest.fixture
def house(bootstrap: str, prefix: str, tmp_path: Path) -> Iterator[SignedHouse]:
    opened = SignedHouse(bootstrap, prefix, tmp_path, [NEW], **METRICS)
    try:
        yield opened
    finally:
        opened.close()


def loop(run: Run, times: int) -> Block | None:
    """Call the same thing again and again; the block that ends it."""
    for _ in range(times):
        decision = run.before_call("exec", LS)
        if isinstance(decision, Block):
            return decision
        run.after_call(decision, result="nothing new")
    return None


def looping(run: str, times: int, **more: object) -> list[Fields]:
    """Events that would block a run, if they counted."""
    event = {"v": 1, "run": run, "tool": "exec", "time": 1, **more}
    call = event | {"type": "tool_call", "fp": {"v": 1, "documented": {"args": ARGS}}}
    seen = {"v": 1, "documented": {"args": ARGS, "result": ARGS}}
    return [call, event | {"type": "tool_outcome", "fp": seen}] * times


def rejected(house: House) -> dict[str, int]:
    """The worker's own count of what it refused, by reason."""
    url = re.search(r"metrics at (http://127\.0\.0\.1:\d+)", house.workers[-1].said)
    assert url is not None
    with urlopen(f"{url[1]}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    found = re.findall(r'events_rejected_total\{reason="(\w+)"\} (\d+)', text)
    return {reason: int(count) for reason, count in found if int(count)}


def test_forgers_reach_no_run(house: SignedHouse, tmp_path: Path) -> None:
    house.start()
    forged = house.run_on(0, "forged")
    with house.signing("robot", fail="closed") as runner, runner.run("mine") as run:
        wait_for("an answer", lambda: run.before_call("exec", {"n": 1}, wait=5).allowed)
        wait_for("it is sent", lambda: not runner.counters["events_pending"])
        # Nobody's, then one with a stranger's key, then one with a key of another runner.
        house.send_as(None, looping(forged, 15), forged)
        stranger = MasterKey("new", b"x" * 32)
        house.send_as("robot", looping(forged, 15), forged, stranger.issue("robot"))
        house.send_as("robot", looping(forged, 15), forged, NEW.issue("mallory"))
        # A runner that has a key of its own speaks for another's run.
        end = {"v": 1, "type": "run_ended", "time": 1, "run": "mine"}
        house.send_as("mallory", [*looping("mine", 15), end], "mine")
        house.send_as("mallory", [{**end, "runner": "robot"}], "mine")
        # It writes what only workers write, and that without a signature too.
        abort = json.dumps({"action": "abort", "by": "mallory", "reason": "mine"})
        control = control_of("commands", 0, "mine", abort)
        pin = {"v": 1, "type": "pin", "time": 1, "settings": {}, "policy": "{}"}
        pin |= {"config_offset": 0, "commands_offset": -1}
        house.send_as("mallory", [control, pin], "mine")
        house.send_as(None, [control, pin], "mine")
        house.settle()
        codes = Counter(str(letter.code) for letter in house.dead_letters())
        assert codes == {"bad_signature": 4, "identity_mismatch": 32, "forged_control": 2}
        assert rejected(house) == codes
        assert house.verdicts(forged) == []
        assert house.verdicts("mine") != []
        # The run goes on as if nothing had been: it is stopped for what it does itself.
        assert run.before_call("exec", {"n": 2}, wait=20).allowed
        wait_for("it is blocked", lambda: loop(run, 30) is not None)
        assert runner.counters["verdicts_unsigned"] == 0
    house.settle()
    check_replays(house, tmp_path)


def check_replays(house: SignedHouse, folder: Path) -> None:
    """What was recorded is decided again the same, with the key, and only with it."""
    told = {"bootstrap": house.bootstrap, "prefix": house.prefix, "signing.file": house.file}

    def replayed(events: str, **more: object) -> Audit:
        settings = load({**told, "signing.events": events, **more}).settings
        job = make_job(settings, source_of(settings, None))
        place = folder / f"replay-{events}"
        place.mkdir()
        return audit(job, verdict_topic(settings), place)

    assert replayed("required").success
    trusting = replayed("off")
    assert not trusting.success, "the forged run is judged where nobody checks"
    assert any("taken on trust" in note for note in trusting.replay.notes)
    with pytest.raises(SettingsError, match="no key to check with"):
        replayed("required", **{"signing.file": None})


def test_verdicts_that_no_worker_signed_are_ignored(house: SignedHouse) -> None:
    house.start()
    with house.signing("robot", fail="closed") as runner, runner.run("mine") as run:
        wait_for("an answer", lambda: run.before_call("exec", {"n": 1}, wait=5).allowed)
        forge(house, "mine", None)
        forge(house, "mine", MasterKey("new", b"x" * 32))
        forge(house, "mine", OLD)
        wait_for("all arrive", lambda: runner.counters["verdicts_unsigned"] == 3)
        assert run.before_call("exec", {"n": 2}, wait=20).allowed
        assert runner.counters["aborts"] == 0


def forge(house: House, run: str, key: MasterKey | None) -> None:
    """Publish an abort of a run as somebody who may write verdicts, but holds no master key."""
    value = encode_model(verdict(Action.ABORT, run))
    headers = [] if key is None else verdict_headers(key.issue("robot"), run, value)
    producer = KafkaProducer(bootstrap_servers=house.bootstrap)
    producer.send(
        house.topics.verdicts,
        key=run.encode(),
        value=value,
        partition=house.partition(run),
        headers=headers,
    ).get(30)
    producer.close()


def test_keys_are_changed_while_runs_go_on(bootstrap: str, prefix: str, tmp_path: Path) -> None:
    house = SignedHouse(bootstrap, prefix, tmp_path, [OLD])
    try:
        house.start()
        with house.signing("before") as before, before.run("first") as first:
            assert loop(first, 12) is None
            # The workers learn the new key before any runner uses it.
            house.hold(OLD, NEW)
            house.restart()
            wait_for("it is blocked", lambda: loop(first, 30) is not None)
            with house.signing("after", NEW, OLD) as after, after.run("second") as second:
                assert loop(second, 12) is None
                house.hold(NEW, OLD)
                house.restart()
                wait_for("it is blocked", lambda: loop(second, 30) is not None)
                assert after.counters["verdicts_unsigned"] == 0
            # Verdicts are signed with the new key now: a runner that missed it hears nothing.
            house.settle()
            unheard = before.counters["verdicts_unsigned"]
            with before.run("third") as third:
                assert loop(third, 25) is None
                wait_for("it came", lambda: before.counters["verdicts_unsigned"] > unheard)
            assert house.dead_letters() == []
            house.hold(NEW)
            house.restart()
            assert first.before_call("exec", {"n": 2}).allowed
            wait_for("it is refused", lambda: bool(house.dead_letters()))
            assert {letter.detail for letter in house.dead_letters()} == {"unknown key-id"}
        asyncio.run(looping_async(house))
    finally:
        house.close()


async def looping_async(house: SignedHouse) -> None:
    """The runner for asyncio, at a gate and on its own."""
    async with house.signing_async("async", NEW) as runner, runner.run("fourth") as run:
        decision = await run.before_call("exec", LS, wait=20)
        assert decision.allowed
        assert runner.counters["gate_timeouts"] == 0
        for _ in range(40):
            await run.after_call(decision, result="nothing new")
            decision = await run.before_call("exec", LS)
            if isinstance(decision, Block):
                break
            await asyncio.sleep(0.2)
        assert isinstance(decision, Block)
        assert runner.counters["verdicts_unsigned"] == 0


def test_workers_sign_and_count_their_own_records(house: SignedHouse) -> None:
    house.start()
    changes = house.push({"agents": {"list": [{"id": "a", "tools": {"loopDetection": {}}}]}})
    house.await_settings(max(change.offset or 0 for change in changes))
    own = [record for record in house.events() if dict(record.headers).get(SIGNER) == b""]
    assert len(own) >= 2 * PARTITIONS
    for record in own:
        assert record.headers == own_headers([NEW], record.value)
    assert house.dead_letters() == []
    headers = [dict(record.headers) for record in house._verdicts.records]
    assert headers
    assert {told[KEY_ID] for told in headers} == {b"new"}


def test_recorded_runs_are_published_signed(
    house: SignedHouse, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    house.start()
    key = tmp_path / "publish.key"
    key.write_text(house.issue("loopstream-publish"))
    at = ["--bootstrap", house.bootstrap, "--prefix", house.prefix]
    for ways in (["--set", f"signing.file={house.file}"], ["--signing-key", str(key)]):
        name = f"{ways[0].strip('-')}-"
        assert command(["publish", "--sample", "loop", "--run-prefix", name, *ways, *at]) == 0
    assert command(["publish", "--sample", "loop", "--run-prefix", "un-", *at]) == 0
    capsys.readouterr()
    house.settle()
    blocked = {v.run for v in house.all_verdicts() if v.action is Action.BLOCK}
    assert {str(run).partition("-")[0] for run in blocked} == {"set", "signing"}
    assert {str(letter.code) for letter in house.dead_letters()} == {"bad_signature"}


def control_of(source: str, offset: int, key: str, body: str) -> Fields:
    digest = hashlib.sha256(body.encode()).digest()
    fields = {"v": 1, "type": "control", "time": 1, "source": source, "offset": offset}
    return fields | {"sha256": digest, "key": key, "body": body}
