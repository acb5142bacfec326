"""A runner that holds a key obeys a worker's signature, and nobody else."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from kafka import KafkaProducer

from loopstream.config import load
from loopstream.errors import SettingsError
from loopstream.events import Action
from loopstream.sdk.options import Options
from loopstream.sdk.ports import Record
from loopstream.wire.signing import SIGNATURE, is_signed, run_key, runner_key, sign_verdict
from loopstream.wire.verdicts import encode_model
from tests.e2e.house import House, wait_for
from tests.sdk.fakes import Bench, verdict

MASTER = b"m" * 32
KEY = runner_key(MASTER, "r")
ABORT = verdict(Action.ABORT)


def test_keys_are_those_of_the_hkdf_of_rfc_5869() -> None:
    assert runner_key(MASTER, "é") == HKDF(
        SHA256(), 32, salt=None, info=b"loopstream runner 1\0" + "é".encode()
    ).derive(MASTER)
    assert run_key(KEY, "run") == HKDF(
        SHA256(), 32, salt=None, info=b"loopstream run 1\0run"
    ).derive(KEY)


def test_a_signature_is_good_for_one_value_of_one_run() -> None:
    key = run_key(KEY, "run-1")
    signature = sign_verdict(key, b"value")
    assert is_signed(key, b"value", signature)
    assert not is_signed(key, b"valuE", signature)
    assert not is_signed(run_key(KEY, "run-2"), b"value", signature)
    assert not is_signed(run_key(runner_key(MASTER, "s"), "run-1"), b"value", signature)
    assert not is_signed(key, b"value", signature[:-1])
    assert not is_signed(key, b"value", None)


@pytest.mark.parametrize(
    ("signature", "obeyed"),
    [
        pytest.param(sign_verdict(run_key(KEY, "run-1"), encode_model(ABORT)), True, id="signed"),
        pytest.param(None, False, id="unsigned"),
        pytest.param(b"", False, id="empty"),
        pytest.param(
            sign_verdict(run_key(runner_key(MASTER, "s"), "run-1"), encode_model(ABORT)),
            False,
            id="by another runner",
        ),
        pytest.param(
            sign_verdict(run_key(KEY, "run-2"), encode_model(ABORT)), False, id="of another run"
        ),
    ],
)
def test_a_runner_with_a_key(signature: bytes | None, obeyed: bool) -> None:
    bench = Bench(verdict_key=KEY)
    bench.begin("run-1")
    bench.hub.deliver(Record(0, 0, b"run-1", encode_model(ABORT), None, signature))
    counts = bench.hub.counters.view()
    assert counts["verdicts_received"] == obeyed
    assert counts["verdicts_unsigned"] == (not obeyed)


def test_a_runner_without_a_key_takes_any_verdict() -> None:
    bench = Bench()
    bench.begin("run-1")
    bench.hear(ABORT)
    assert bench.hub.counters.view()["verdicts_received"] == 1


def test_keys_of_the_wrong_length_are_refused_and_never_shown(tmp_path: Path) -> None:
    with pytest.raises(SettingsError):
        Options(verdict_key=b"short")
    assert KEY.hex() not in repr(Options(verdict_key=KEY))
    assert repr(KEY) not in repr(Options(verdict_key=KEY))
    file = tmp_path / "key"
    file.write_bytes(b"x" * 31)
    with pytest.raises(SettingsError, match="32 bytes"):
        load({"signing.file": file}).settings.signing.read()
    file.write_bytes(MASTER + b"\n")
    assert load({"signing.file": file}).settings.signing.read() == MASTER
    loaded = load({"signing.secret": "s" * 40})
    assert "s" * 40 not in repr(loaded.settings)


@pytest.mark.kafka
@pytest.mark.timeout(180)
def test_a_worker_signs_and_a_forgery_is_ignored(
    bootstrap: str, prefix: str, tmp_path: Path
) -> None:
    master = secrets.token_bytes(40).replace(b"\n", b"n")
    file = tmp_path / "master.key"
    file.write_bytes(master)
    values = {"signing.file": str(file)}
    house = House(bootstrap, prefix, tmp_path, blocks={"enabled": True}, values=values)
    try:
        house.start()
        key = runner_key(master, "robot")
        with (
            house.runner("coder", runner="robot", verdict_key=key, fail="closed") as runner,
            runner.run("mine") as run,
        ):
            wait_for("an answer", lambda: run.before_call("exec", {"n": 1}, wait=5).allowed)
            forge(house, "mine", runner_key(b"another master key, 32 bytes long", "robot"))
            forge(house, "mine", None)
            wait_for("both arrive", lambda: runner.counters["verdicts_unsigned"] == 2)
            assert run.before_call("exec", {"n": 2}, wait=20).allowed
            assert runner.counters["verdicts_unsigned"] == 2
    finally:
        house.close()


def forge(house: House, run: str, key: bytes | None) -> None:
    """Publish an abort of a run as somebody who may write verdicts, but holds no master key."""
    value = encode_model(verdict(Action.ABORT, run))
    headers = [] if key is None else [(SIGNATURE, sign_verdict(run_key(key, run), value))]
    producer = KafkaProducer(bootstrap_servers=house.bootstrap)
    producer.send(
        house.topics.verdicts,
        key=run.encode(),
        value=value,
        partition=house.partition(run),
        headers=headers,
    ).get(30)
    producer.close()
