"""Signed events: who wrote a record is known before any of it is parsed."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence

import msgpack
import pytest

from loopstream.wire import codec
from loopstream.wire.codec import event_fields
from loopstream.wire.keys import IssuedKey, MasterKey
from loopstream.wire.limits import MAX_RECORD_BYTES
from loopstream.wire.signing import (
    KEY_ID,
    SIGNATURE,
    SIGNER,
    WORKER,
    Headers,
    Verifier,
    own_headers,
    record_headers,
)
from tests.partition.driver import (
    Feed,
    Fields,
    Sources,
    as_json,
    call,
    control_of,
    ended,
    frame,
    outcome,
    single,
    started,
)

NEW, OLD = MasterKey("new", b"n" * 32), MasterKey("old", b"o" * 32)
KEYS = (NEW, OLD)
REQUIRED, VERIFY = Verifier(KEYS), Verifier(KEYS, required=False)
WIRE = bytes.fromhex("82a17601a66576656e747390")  # an empty frame


def by(runner: str, value: bytes, key: MasterKey = NEW) -> Headers:
    return record_headers(key.issue(runner), runner, value)


def signed(feed: Feed, *events: Fields, runner: str = "ann", key: MasterKey = NEW) -> Feed:
    """Feed events in one frame that a runner has signed."""
    value = frame(events)
    return feed.feed(value, headers=by(runner, value, key))


def from_worker(feed: Feed, *events: Fields, keys: Sequence[MasterKey] = KEYS) -> Feed:
    value = frame(events)
    return feed.feed(value, headers=own_headers(keys, value))


def details(feed: Feed) -> list[tuple[str, int, str | None]]:
    letters = feed.partition.dead_letters
    return [(letter.code.value, letter.index, letter.detail) for letter in letters]


# -- a record as a whole -------------------------------------------------------------------------


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.id)
@pytest.mark.parametrize("verifier", [REQUIRED, VERIFY], ids=["required", "verify"])
def test_a_signed_record_counts_under_each_key(verifier: Verifier, key: MasterKey) -> None:
    feed = signed(Feed(verifier=verifier), call(runner="ann"), call(), key=key)
    assert feed.counts == {"applied": 2}
    assert feed.partition.live["r1"].runner == "ann"


@pytest.mark.parametrize("make", [single, as_json], ids=["msgpack", "json"])
def test_single_events_are_signed_alike(make: Callable[[Fields], bytes]) -> None:
    value = make(call())
    assert Feed(verifier=REQUIRED).feed(value, headers=by("ann", value)).counts == {"applied": 1}


VALUE = frame([call(runner="ann")])
ISSUED = NEW.issue("ann")


def but(**changes: bytes | None) -> Headers:
    """Ann's headers with some of them replaced or left out."""
    names = {"signature": SIGNATURE, "signer": SIGNER, "key_id": KEY_ID}
    made = dict(by("ann", VALUE)) | {names[name]: data for name, data in changes.items()}
    return [(name, data) for name, data in made.items() if data is not None]


def signature(key: IssuedKey, value: bytes = VALUE) -> bytes:
    return dict(record_headers(key, "ann", value))[SIGNATURE]


FORGED: dict[str, tuple[Headers, str]] = {
    "of another value": (but(signature=signature(ISSUED, VALUE + b"\0")), "wrong signature"),
    "with another runner's key": (but(signature=signature(NEW.issue("bob"))), "wrong signature"),
    "for another runner": (but(signer=b"bob"), "wrong signature"),
    "as if by a worker": (but(signer=b""), "wrong signature"),
    "of another key id": (but(key_id=b"old"), "wrong signature"),
    "of an unknown key": (but(key_id=b"gone"), "unknown key-id"),
    "of no key": (but(key_id=None), "unknown key-id"),
    "with a run's key": (
        but(signature=signature(IssuedKey("new", ISSUED.run_key("r1")))),
        "wrong signature",
    ),
    "with the master key": (
        but(signature=signature(IssuedKey("new", NEW.secret))),
        "wrong signature",
    ),
    "cut short": (but(signature=signature(ISSUED)[:-1]), "wrong signature"),
    "empty": (but(signature=b""), "wrong signature"),
    "by nobody": (but(signer=None), "signer is missing or malformed"),
    "by no text": (but(signer=b"\xff"), "signer is missing or malformed"),
    "by half a pair": (but(signer="\ud800".encode("utf-8", "surrogatepass")), "signer is missing"),
    "by too long a name": (but(signer=b"a" * 129), "signer is missing or malformed"),
    "by a very long name": (but(signer=b"a" * 100_000), "signer is missing or malformed"),
}


@pytest.mark.parametrize("verifier", [REQUIRED, VERIFY], ids=["required", "verify"])
@pytest.mark.parametrize("name", FORGED)
def test_a_forged_record_is_one_dead_letter(name: str, verifier: Verifier) -> None:
    headers, why = FORGED[name]
    feed = Feed(verifier=verifier).feed(VALUE, headers=headers)
    ((code, index, detail),) = details(feed)
    assert (code, index) == ("bad_signature", -1)
    assert why in (detail or "")
    assert feed.counts == {"rejected": 1}
    assert not feed.partition.live


def test_an_unsigned_record_is_refused_where_signatures_are_required() -> None:
    value = frame([call(), call("r2"), call("r3")])
    feed = Feed(verifier=REQUIRED).feed(value)
    assert details(feed) == [("bad_signature", -1, "no signature")]
    assert feed.counts == {"rejected": 1}


def test_an_unsigned_record_counts_where_they_are_only_checked() -> None:
    assert Feed(verifier=VERIFY).feed(call()).counts == {"applied": 1}


def test_nobody_looks_at_signatures_unless_told_to() -> None:
    feed = Feed().feed(VALUE, headers=but(signature=b"nonsense"))
    assert feed.counts == {"applied": 1}


def test_a_forged_record_is_not_even_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(*_: object, **__: object) -> None:
        raise AssertionError("it was parsed")

    monkeypatch.setattr(msgpack, "unpackb", parse)
    monkeypatch.setattr(codec, "EVENT", None)
    feed = Feed(verifier=REQUIRED).feed(VALUE, as_json(call()), b"\x91" * 100_000, b"{" * 100_000)
    assert feed.codes == ["bad_signature"] * 4


def test_bounds_are_looked_at_before_signatures() -> None:
    huge = b"\x00" * (MAX_RECORD_BYTES + 1)
    feed = Feed(verifier=REQUIRED).feed(None, huge)
    assert feed.codes == ["null_value", "oversize_record"]


def test_a_signature_does_not_excuse_what_is_wrong_otherwise() -> None:
    value = frame([call(), {"v": 1}, call(tool=7)])
    feed = Feed(verifier=REQUIRED).feed(value, headers=by("ann", value))
    assert [code for code, _, _ in details(feed)] == ["unknown_type", "invalid"]
    assert feed.counts["applied"] == 1


# -- whose events --------------------------------------------------------------------------------


def test_a_record_holds_its_signers_events_only() -> None:
    feed = signed(Feed(verifier=REQUIRED), call("r1"), call("r2", runner="bob"), call("r3"))
    assert details(feed) == [("identity_mismatch", 1, "signer")]
    assert sorted(feed.partition.live) == ["r1", "r3"]


def test_the_first_signed_event_binds_the_run_to_its_signer() -> None:
    feed = Feed(verifier=REQUIRED)
    signed(feed, call(), runner="ann")
    signed(feed, call(), outcome(), ended(), started(resumed=True), runner="bob")
    assert details(feed) == [("identity_mismatch", n, "runner") for n in range(4)]
    assert feed.history() == 1
    signed(feed, call(), started(resumed=True), runner="ann")
    assert feed.counts["applied"] == 3


def test_what_was_bound_without_a_signature_is_bound() -> None:
    feed = Feed(verifier=VERIFY).feed(call(runner="ann"))
    signed(feed, call(), runner="bob")
    assert details(feed) == [("identity_mismatch", 0, "runner")]
    signed(feed, call(), runner="ann")
    assert feed.history() == 2


def test_a_run_that_ended_may_begin_anew_elsewhere() -> None:
    feed = Feed(verifier=REQUIRED)
    signed(feed, call(), ended(), runner="ann")
    signed(feed, started(), call(), runner="bob")
    assert feed.codes == []
    assert feed.partition.live["r1"].runner == "bob"


def test_a_signed_record_that_is_sent_again_is_a_duplicate() -> None:
    feed = Feed(verifier=REQUIRED)
    for numbered in ({"epoch": 1, "seq": 1}, {"id": "e1"}):
        value = frame([call(**numbered)])
        feed.feed(value, value, headers=by("ann", value))
    assert feed.counts == {"applied": 2, "duplicate": 2}


def test_after_a_crash_the_same_is_decided() -> None:
    def play(feed: Feed) -> Feed:
        signed(feed, call(seq=1))
        feed.feed(call(seq=2))
        return signed(feed, call(seq=2), runner="bob")

    def again(feed: Feed) -> Feed:
        feed.restart()
        feed.offset = -1
        return play(feed)

    feed = play(Feed(verifier=REQUIRED))
    first = feed.partition.dead_letters
    assert details(feed) == [
        ("bad_signature", -1, "no signature"),
        ("identity_mismatch", 0, "runner"),
    ]
    assert again(feed).partition.dead_letters == first
    assert feed.counts == {"applied": 1, "rejected": 2}
    feed.checkpoint()
    assert again(feed).partition.dead_letters == first
    assert feed.counts == {"replayed": 1, "rejected": 2}


# -- what workers write ---------------------------------------------------------------------------


def enabled() -> Sources:
    sources = Sources()
    sources.push("config", "*", {"enabled": True})
    return sources


def pushed(feed: Feed) -> Fields:
    """A settings record that came after the pin, as its copy."""
    feed.sources.push("config", "a", {"enabled": True})
    return control_of(feed.sources.topics["config"][-1], "config")


def pin_of(feed: Feed) -> Fields:
    return event_fields(feed.partition.pin(0))


def test_workers_sign_what_they_write() -> None:
    feed = Feed(verifier=REQUIRED, sources=enabled())
    from_worker(feed, pin_of(feed), pushed(feed))
    assert feed.counts == {"pin": 1, "control": 1}
    assert feed.partition.pinned


@pytest.mark.parametrize("honest", [True, False], ids=["a true copy", "a forgery"])
def test_a_runner_writes_no_controls(honest: bool) -> None:
    feed = Feed(verifier=REQUIRED, sources=enabled())
    control = pushed(feed) if honest else pushed(feed) | {"body": "{}", "offset": 2**40}
    signed(feed, control, call())
    assert details(feed) == [("forged_control", 0, "signed by a runner")]
    assert feed.counts == {"rejected": 1, "applied": 1}
    from_worker(feed, pushed(feed))
    assert feed.counts["control"] == 1


def test_a_runner_writes_no_pins() -> None:
    feed = Feed(verifier=REQUIRED, sources=enabled())
    signed(feed, pin_of(feed))
    assert details(feed) == [("forged_control", 0, "signed by a runner")]
    assert not feed.partition.pinned


def test_unsigned_controls_and_pins_count_for_nothing_where_signatures_are_required() -> None:
    feed = Feed(verifier=REQUIRED, sources=enabled())
    feed.feed(pin_of(feed), pushed(feed))
    assert feed.codes == ["bad_signature"] * 2
    assert not feed.partition.pinned
    assert [control.offset for control in feed.partition.pending_controls()] == [1]


def test_unsigned_controls_are_held_against_their_source_where_they_are_only_checked() -> None:
    feed = Feed(verifier=VERIFY, sources=enabled())
    control = pushed(feed)
    feed.feed(control | {"body": '{"enabled":false}'}, control, pin_of(feed))
    assert details(feed) == [("forged_control", 0, "the source says otherwise")]
    assert feed.counts == {"rejected": 1, "control": 1, "pin": 1}


def test_workers_report_for_no_run() -> None:
    feed = from_worker(Feed(verifier=REQUIRED), call(), call(runner=""))
    assert details(feed) == [("identity_mismatch", n, "signer") for n in range(2)]


def test_workers_without_keys_do_not_sign() -> None:
    assert own_headers((), WIRE) == [("content-type", b"application/msgpack")]
    assert dict(own_headers(KEYS, WIRE))[SIGNER] == WORKER.encode()
    assert dict(own_headers(KEYS, WIRE))[KEY_ID] == b"new"


def test_a_verifier_goes_to_other_processes_and_shows_no_key() -> None:
    assert pickle.loads(pickle.dumps(REQUIRED)) == REQUIRED
    assert "n" * 32 not in repr(REQUIRED)
    assert "new" in repr(REQUIRED)
