"""What docs/reference/wire.md says of signed records is enough for a client of one's own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from loopstream.wire.keys import read_issued_keys
from loopstream.wire.signing import Verifier, record_headers, verdict_headers
from tests.e2e.foreign_client import ForeignRun
from tests.e2e.house import PATIENCE_S, wait_for
from tests.security.signed import NEW, SignedHouse
from tests.security.test_signed_worker import forge

WIRE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "wire.md"
ARGS, RESULT = {"path": "größe.txt"}, {"content": [{"type": "text", "text": "nothing new"}]}


@pytest.fixture
def example() -> dict[str, str]:
    """The rows of the page's example."""
    text = WIRE.read_text()
    table = text[text.index("An example to check") :].partition("\n\n| what")[2]
    return dict(re.findall(r"^\| (.*?) \| `(.*)` \|$", table.partition("\n\n")[0], re.MULTILINE))


def test_the_example_of_the_page_is_right(example: dict[str, str]) -> None:
    (key,) = read_issued_keys(example["issued key"], "the page")
    runner = "runner-7"
    assert example["`signer`, `key-id`"] == f"{runner}`, `{key.id}"
    value = example["value of an events record"].encode()
    headers = record_headers(key, runner, value)
    assert dict(headers)["signature"].hex() == example["its `signature`, in hexadecimal"]
    assert key.run_key("r-1").hex() == example["key of the run `r-1`"]
    verdict = example["value of a verdict's record (cut short)"].encode()
    signed = dict(verdict_headers(key, "r-1", verdict))
    assert signed["signature"].hex() == example["its `signature`"]


def test_the_functions_of_the_page_are_right(example: dict[str, str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", WIRE.read_text(), re.DOTALL)
    page: dict[str, Any] = {}
    exec(code, page)
    (key,) = read_issued_keys(example["issued key"], "the page")
    event, verdict = (
        example[f"value of {what}"].encode()
        for what in ("an events record", "a verdict's record (cut short)")
    )
    signatures = (
        page["sign_events"](key.secret, event),
        page["sign_verdict"](key.secret, "r-1", verdict),
    )
    assert [signature.hex() for signature in signatures] == [
        example["its `signature`, in hexadecimal"],
        example["its `signature`"],
    ]


def test_what_the_client_signs_is_good() -> None:
    run = ForeignRun.__new__(ForeignRun)
    run._runner, run._key_id, run._issued = "größe", NEW.id, NEW.issue("größe").secret
    assert Verifier((NEW,)).signer(b"value", run._headers(b"value")) == "größe"


@pytest.mark.kafka
@pytest.mark.timeout(240)
def test_a_foreign_client_signs_and_obeys_what_is_signed(
    bootstrap: str, prefix: str, tmp_path: Path
) -> None:
    house = SignedHouse(bootstrap, prefix, tmp_path, [NEW])
    try:
        house.start()
        key = house.issue("stranger")
        run = ForeignRun(bootstrap, prefix, "theirs", "coder", epoch=1, runner="stranger", key=key)
        forge(house, "theirs", None)
        assert run.ask("read", ARGS, PATIENCE_S)["level"] == "none"
        assert run.unsigned == 1
        for _ in range(20):
            assert run.before("write", ARGS) is None
            run.after("write", ARGS, result=RESULT)
        wait_for("it is blocked", lambda: run.before("write", ARGS) is not None)
        assert run.abort is None
        run.end()
        run.close()
        house.settle()
        assert house.dead_letters() == []
    finally:
        house.close()
