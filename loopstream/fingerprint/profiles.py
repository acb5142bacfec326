"""What tells the profiles apart when outcomes are fingerprinted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from loopstream.errors import SettingsError
from loopstream.fingerprint.canonical import canonical_bytes
from loopstream.fingerprint.wrapped import unwrapped_bytes

DOCUMENTED: Final = "documented"
REFERENCE: Final = "reference-2026-9"
# Fingerprinted by a package of its own (fingerprint/extended).
EXTENDED: Final = "extended"


class Rules(NamedTuple):
    """One profile's choices.

    Attributes:
        encode: bytes of an outcome's value, ready to be hashed.
        send_tools: tools that send a message whatever their arguments are.
        typed: outcomes carry a kind, a no-progress mark and a failure identity; vetoes are
            recorded, and writes that changed nothing are all one outcome.
    """

    encode: Callable[[object], bytes]
    send_tools: frozenset[str]
    typed: bool


_RULES: Final = {
    DOCUMENTED: Rules(canonical_bytes, frozenset({"sessions_send"}), typed=False),
    REFERENCE: Rules(
        unwrapped_bytes,
        frozenset({"sessions_send", "conversations_send", "conversations_turn"}),
        typed=True,
    ),
}


def rules_of(profile: str) -> Rules:
    """The rules of a profile by its name.

    Raises:
        SettingsError: no profile has this name.
    """
    try:
        return _RULES[profile]
    except KeyError:
        known = " or ".join(_RULES)
        raise SettingsError(f"unknown profile {profile!r}", hint=f"Use {known}.") from None
