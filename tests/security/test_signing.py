"""A runner that was issued a key signs what it sends, and obeys only what a worker signed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loopstream.errors import SettingsError
from loopstream.events import Action
from loopstream.sdk import AsyncRunner, Runner
from loopstream.sdk.options import Options
from loopstream.sdk.ports import Record
from loopstream.wire.keys import IssuedKey, MasterKey, key_line
from loopstream.wire.signing import (
    KEY_ID,
    SIGNATURE,
    Verifier,
    is_signed_verdict,
    verdict_headers,
)
from loopstream.wire.verdicts import encode_model
from tests.sdk.fakes import Bench, Bus, on, verdict

NEW, OLD = MasterKey("new", b"n" * 32), MasterKey("old", b"o" * 32)
KEY = NEW.issue("r")
ABORT = verdict(Action.ABORT)
VALUE = encode_model(ABORT)


def test_a_signature_is_good_for_one_value_of_one_run() -> None:
    told = dict(verdict_headers(KEY, "run-1", b"value"))
    signature = told[SIGNATURE]
    assert (len(signature), told[KEY_ID]) == (32, b"new")

    def good(
        key: IssuedKey = KEY,
        scope: str = "run-1",
        value: bytes = b"value",
        key_id: bytes | None = b"new",
        signature: bytes | None = signature,
    ) -> bool:
        return is_signed_verdict((OLD.issue("r"), key), scope, value, key_id, signature)

    assert good()
    assert not good(value=b"valuE")
    assert not good(scope="run-2")
    assert not good(key=NEW.issue("s"))
    assert not good(key_id=b"old")
    assert not good(key_id=None)
    assert not good(signature=signature[:-1])
    assert not good(signature=None)


@pytest.mark.parametrize(
    ("headers", "obeyed"),
    [
        pytest.param(verdict_headers(KEY, "run-1", VALUE), True, id="signed"),
        pytest.param(verdict_headers(OLD.issue("r"), "run-1", VALUE), True, id="with the old key"),
        pytest.param([], False, id="unsigned"),
        pytest.param([(SIGNATURE, b""), (KEY_ID, b"new")], False, id="empty"),
        pytest.param(
            verdict_headers(NEW.issue("s"), "run-1", VALUE), False, id="for another runner"
        ),
        pytest.param(verdict_headers(KEY, "run-2", VALUE), False, id="of another run"),
        pytest.param(
            verdict_headers(MasterKey("x", b"x" * 32).issue("r"), "run-1", VALUE),
            False,
            id="with an unknown key",
        ),
    ],
)
def test_a_runner_with_keys(headers: list[tuple[str, bytes]], obeyed: bool) -> None:
    bench = Bench(signing_keys=(KEY, OLD.issue("r")))
    bench.begin("run-1")
    told = dict(headers)
    record = Record(0, 0, b"run-1", VALUE, None, told.get(SIGNATURE), told.get(KEY_ID))
    bench.hub.deliver(record)
    counts = bench.hub.counters.view()
    assert counts["verdicts_received"] == obeyed
    assert counts["verdicts_unsigned"] == (not obeyed)


def test_a_runner_without_a_key_takes_any_verdict() -> None:
    bench = Bench()
    bench.begin("run-1")
    bench.hear(ABORT)
    assert bench.hub.counters.view()["verdicts_received"] == 1


@pytest.mark.parametrize("name", ["r", "größe", "r" * 500], ids=["plain", "text", "long"])
def test_a_runner_signs_with_its_first_key_under_its_bounded_name(name: str) -> None:
    runner_id = Options(runner=name).runner_id
    options = Options(runner=name, signing_keys=(NEW.issue(runner_id), OLD.issue(runner_id)))
    headers = options.headers(b"value")
    assert dict(headers)[KEY_ID] == b"new"
    assert Verifier((OLD, NEW)).signer(b"value", headers) == runner_id
    assert Options(runner=name).headers(b"value") == []


@pytest.mark.slow
@pytest.mark.parametrize("face", [Runner, AsyncRunner])
def test_both_runners_take_keys_as_text_or_file(face: type[Any], tmp_path: Path) -> None:
    text = f"{key_line(KEY)}\n{key_line(OLD.issue('r'))}\n"
    (tmp_path / "r.key").write_text(text)
    on_bus = on(Bus(), face)
    for given in (text, tmp_path / "r.key"):
        runner = on_bus("b:1", runner="r", signing_key=given)
        runner._machine.close(0)
        assert runner._hub.options.signing_keys == (KEY, OLD.issue("r"))
        assert KEY.secret.hex() not in repr(runner._hub.options)
    with pytest.raises(SettingsError, match="runner"):
        on_bus("b:1", signing_key=text)
    with pytest.raises(SettingsError, match="line 1"):
        on_bus("b:1", runner="r", signing_key="no key")
