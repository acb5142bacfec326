"""Tables that keep every digest and name of a row once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_DIGEST_BYTES: Final = 32
_HEX_DIGEST: Final = re.compile(r"([0-9a-f]{64})")

# A text with digests in it: literal parts and places in the digest table by turns.
Folded = list[str | int]


class Digests:
    """Digests as hexadecimal text outside, as 32 bytes each in one blob inside."""

    def __init__(self, blob: bytes = b"") -> None:
        self._hex = [
            blob[at : at + _DIGEST_BYTES].hex() for at in range(0, len(blob), _DIGEST_BYTES)
        ]
        self._places = {text: at for at, text in enumerate(self._hex)}

    def add(self, text: str) -> int:
        """The digest's place in the table."""
        place = self._places.get(text)
        if place is None:
            place = self._places[text] = len(self._hex)
            self._hex.append(text)
        return place

    def get(self, place: int) -> str:
        """The digest at a place."""
        return self._hex[place]

    def blob(self) -> bytes:
        """The table as bytes."""
        return bytes.fromhex("".join(self._hex))


class Names:
    """Tool names; None stays None."""

    def __init__(self, table: Sequence[str] = ()) -> None:
        self._names = list(table)
        self._places = {name: at for at, name in enumerate(self._names)}

    def add(self, name: str | None) -> int | None:
        """The name's place in the table."""
        if name is None:
            return None
        place = self._places.get(name)
        if place is None:
            place = self._places[name] = len(self._names)
            self._names.append(name)
        return place

    def get(self, place: int | None) -> str | None:
        """The name at a place."""
        return None if place is None else self._names[place]

    def table(self) -> list[str]:
        """The names in order of place."""
        return self._names


class Texts:
    """Texts that contain digests (signatures, results, warning keys), by parts."""

    def __init__(self, digests: Digests) -> None:
        self._digests = digests

    def add(self, text: str) -> Folded:
        """Literal parts at even places, digests at odd ones."""
        parts = _HEX_DIGEST.split(text)
        return [self._digests.add(part) if at % 2 else part for at, part in enumerate(parts)]

    def get(self, folded: Folded) -> str:
        """The text again."""
        return "".join(
            self._digests.get(part) if isinstance(part, int) else part for part in folded
        )
