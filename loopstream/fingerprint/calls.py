"""The signature of a call: its tool and a digest of its arguments, taken whole."""

from __future__ import annotations

from typing import Final, NamedTuple

from loopstream.fingerprint.canonical import canonical_bytes, digest

POLL_ACTIONS: Final = ("poll", "log")


class CallPrint(NamedTuple):
    """What detectors need of a call beside its tool.

    Attributes:
        args: 32-byte digest of the canonical arguments.
        poll: the call asks how something is getting on, so that repeating it is no fault in itself.
    """

    args: bytes
    poll: bool


def fingerprint_call(tool: str, args: object, key: bytes | None = None) -> CallPrint:
    """Fingerprint a call; ``args`` is `MISSING` when the call has none, ``key`` the tenant's.

    The tool's name is taken literally, case included. About 3 us for short arguments and 10 us
    for 1 kB of them.

    Raises:
        TypeError: the arguments have no JSON form.
    """
    return CallPrint(digest(canonical_bytes(args), key), is_poll(tool, args))


def is_poll(tool: str, args: object) -> bool:
    """True for ``command_status``, and for ``process`` when it polls or reads a log."""
    if tool == "process":
        return isinstance(args, dict) and args.get("action") in POLL_ACTIONS
    return tool == "command_status"


def signature(tool: str, args_digest: bytes) -> str:
    """The call signature as text: the ``argsHash`` of the vectors, also part of warning keys."""
    return f"{tool}:{args_digest.hex()}"
