"""Sketches of arguments: sets of short digests that tell how alike two calls are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from loopstream.fingerprint.canonical import canonical_bytes, digest

DIGEST_BYTES: Final = 4
MAX_LEAVES: Final = 16
MAX_WORDS: Final = 12
# Longer texts are compared as wholes.
_MAX_TEXT: Final = 600
_MAX_LOOKED_AT: Final = 64


def leaves_of(args: object, key: bytes | None) -> bytes:
    """Digests of the flattened leaves (path and value), sorted and joined, 4 bytes each.

    Of more than 16 leaves the 16 smallest digests stand for all: the same choice for equal sets.
    """
    return _joined((_leaf(path, value) for path, value in _flat(args)), MAX_LEAVES, key)


def words_of(args: object, key: bytes | None) -> bytes:
    """Digests of the words in the arguments' texts; empty where they are too long to compare."""
    texts = [value for _, value in _flat(args) if isinstance(value, str)]
    if not texts or sum(map(len, texts)) > _MAX_TEXT:
        return b""
    words = {word for text in texts for word in text.lower().split()}
    return _joined((word.encode("utf-8", "surrogatepass") for word in words), MAX_WORDS, key)


def _joined(features: Iterator[bytes], bound: int, key: bytes | None) -> bytes:
    digests = sorted({digest(feature, key)[:DIGEST_BYTES] for feature in features})
    return b"".join(digests[:bound])


def _leaf(path: str, value: object) -> bytes:
    return path.encode("utf-8", "surrogatepass") + b"\0" + canonical_bytes(value)


def _flat(value: object) -> Iterator[tuple[str, object]]:
    """Leaves with their paths, at most 64; positions in lists don't count."""
    stack: list[tuple[str, object]] = [("", value)]
    given = 0
    while stack and given < _MAX_LOOKED_AT:
        at, item = stack.pop()
        if isinstance(item, dict) and item:
            stack.extend((f"{at}.{name}", inner) for name, inner in sorted(item.items()))
        elif isinstance(item, list) and item:
            stack.extend((f"{at}[]", inner) for inner in item[:_MAX_LOOKED_AT])
        else:
            given += 1
            yield at, item
