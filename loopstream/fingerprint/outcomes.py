"""The signature of an outcome: which parts of a result or error count, by the kind of tool."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, NamedTuple

from loopstream.fingerprint.calls import CallPrint, fingerprint_call
from loopstream.fingerprint.canonical import MISSING, digest
from loopstream.fingerprint.errors import error_text, unknown_tool
from loopstream.fingerprint.exec_tool import exec_outcome
from loopstream.fingerprint.failures import failure_identity
from loopstream.fingerprint.process_tool import process_outcome
from loopstream.fingerprint.profiles import DOCUMENTED, Rules, rules_of
from loopstream.fingerprint.results import Reading, is_loop_veto, read_result
from loopstream.fingerprint.sends import is_send, stripped
from loopstream.fingerprint.write_tool import UNCHANGED, changed_nothing

_ERROR_PREFIX: Final = "error:"


class OutcomeKind(StrEnum):
    """What sort of outcome a record has; the vectors show the last two and leave the others out."""

    ORDINARY = "ordinary"
    ERROR = "error"
    VETO = "tool-loop-veto"
    TERMINAL_EXEC_FAILURE = "terminal-exec-failure"


class OutcomePrint(NamedTuple):
    """What detectors need of an outcome beside its tool.

    Attributes:
        args: 32-byte digest of the canonical arguments, as in `CallPrint`.
        poll: as in `CallPrint`.
        digest: 32-byte digest of what counts of the outcome; None: nothing is recorded and the call
            stays pending, or the kind is a veto.
        failed: the digest is an error's.
        unknown_tool: lower-cased name that the error says is no tool.
        kind: reference profile only; None when nothing is recorded.
        no_progress: reference profile only; the outcome is known to have achieved nothing.
        failure: reference profile only; 32-byte digest of the failure identity.
    """

    args: bytes
    poll: bool
    digest: bytes | None = None
    failed: bool = False
    unknown_tool: str | None = None
    kind: OutcomeKind | None = None
    no_progress: bool = False
    failure: bytes | None = None

    @property
    def result(self) -> str | None:
        """The outcome signature as text (`result_text`)."""
        return None if self.digest is None else result_text(self.digest, self.failed)


def fingerprint_outcome(
    tool: str,
    args: object,
    *,
    result: object = MISSING,
    error: object = MISSING,
    profile: str = DOCUMENTED,
    key: bytes | None = None,
    call: CallPrint | None = None,
) -> OutcomePrint:
    """Fingerprint an outcome: an error if there is one (even null), else the result.

    Args:
        tool: name of the tool, taken literally.
        args: the call's arguments; `MISSING` when it has none.
        result: what the tool gave back; `MISSING` when nothing came.
        error: what went wrong; it wins over a result given with it.
        profile: ``documented`` or ``reference-2026-9``.
        key: the tenant's key, for HMAC digests.
        call: the call's fingerprint, where it is known already.

    Raises:
        SettingsError: no profile has this name.
        TypeError: a value has no JSON form.
    """
    rules = rules_of(profile)
    if call is None:
        call = fingerprint_call(tool, args, key)
    if error is not MISSING:
        return _of_error(call, error, rules, key)
    if result is MISSING:
        return OutcomePrint(*call)
    if not isinstance(result, dict):
        return _ordinary(call, result, rules, key)
    reading = read_result(result)
    if is_loop_veto(reading.details):
        return OutcomePrint(*call, kind=OutcomeKind.VETO if rules.typed else None)
    if tool == "exec":
        return _of_exec(call, reading, rules, key)
    if rules.typed and changed_nothing(tool, reading.details):
        return _ordinary(call, UNCHANGED, rules, key)._replace(no_progress=True)
    return _ordinary(call, _counted(tool, args, reading, rules), rules, key)


def result_text(result_digest: bytes, is_error: bool) -> str:
    """The text form of an outcome signature: hex, with ``error:`` in front of an error's."""
    return f"{_ERROR_PREFIX if is_error else ''}{result_digest.hex()}"


def _of_error(call: CallPrint, error: object, rules: Rules, key: bytes | None) -> OutcomePrint:
    text = error_text(error, rules.encode)
    return OutcomePrint(
        *call,
        digest=digest(rules.encode(text), key),
        failed=True,
        unknown_tool=unknown_tool(text),
        kind=OutcomeKind.ERROR if rules.typed else None,
        no_progress=rules.typed,
    )


def _of_exec(call: CallPrint, reading: Reading, rules: Rules, key: bytes | None) -> OutcomePrint:
    outcome = exec_outcome(reading)
    if outcome is None:
        return _ordinary(call, _whole(reading), rules, key)
    seen = _ordinary(call, outcome, rules, key)
    failure = failure_identity(outcome) if rules.typed else None
    if failure is None:
        return seen
    identity = digest(rules.encode(failure), key)
    return seen._replace(kind=OutcomeKind.TERMINAL_EXEC_FAILURE, failure=identity)


def _ordinary(call: CallPrint, value: object, rules: Rules, key: bytes | None) -> OutcomePrint:
    return OutcomePrint(
        *call,
        digest=digest(rules.encode(value), key),
        kind=OutcomeKind.ORDINARY if rules.typed else None,
    )


def _counted(tool: str, args: object, reading: Reading, rules: Rules) -> object:
    """The part of the result that counts, for all tools but ``exec``."""
    if tool == "process":
        return process_outcome(args, reading) or _whole(reading)
    if is_send(tool, args, rules.send_tools):
        return stripped(reading.details)
    return _whole(reading)


def _whole(reading: Reading) -> dict[str, Any]:
    return {"details": reading.details, "text": reading.text}
