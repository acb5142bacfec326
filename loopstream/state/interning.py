"""Tables that keep every digest and name of a row once: written by place, read as plain lists."""

from __future__ import annotations

import re
from typing import Final

_DIGEST_BYTES: Final = 32
_HEX_DIGEST: Final = re.compile(r"([0-9a-f]{64})")

# A text with digests in it: literal parts and places in the digest table by turns.
Folded = list[str | int]


class Digests:
    """Digests as hexadecimal text outside, as 32 bytes each in one blob inside."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def add(self, text: str) -> int:
        """The digest's place in the table."""
        places = self._places
        place = places.get(text)
        if place is None:
            place = places[text] = len(places)
        return place

    def blob(self) -> bytes:
        """The table as bytes."""
        return bytes.fromhex("".join(self._places))


def read_digests(blob: bytes) -> list[str]:
    """The table of a `Digests.blob`, by place."""
    return blob.hex(" ", _DIGEST_BYTES).split()


class Names:
    """Tool names; None stays None. Read by `name_at` in the list that `table` gave."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def add(self, name: str | None) -> int | None:
        """The name's place in the table."""
        if name is None:
            return None
        places = self._places
        place = places.get(name)
        if place is None:
            place = places[name] = len(places)
        return place

    def table(self) -> list[str]:
        """The names in order of place."""
        return list(self._places)


def name_at(names: list[str], place: int | None) -> str | None:
    """The name at a place."""
    return None if place is None else names[place]


def fold(text: str, digests: Digests) -> Folded:
    """A text that contains digests (signature, result, warning key) by parts: literal ones at even
    places, digests at odd ones.
    """
    parts = _HEX_DIGEST.split(text)
    return [digests.add(part) if at % 2 else part for at, part in enumerate(parts)]


def unfold(folded: Folded, digests: list[str]) -> str:
    """The text again."""
    return "".join(digests[part] if isinstance(part, int) else part for part in folded)
