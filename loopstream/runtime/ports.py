"""What a checkpoint needs of Kafka, as functions, so that tests can refuse, delay and record."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Protocol


class SendRecord(Protocol):
    """Hands a record to the client; the future is its confirmation."""

    async def __call__(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        partition: int,
        headers: Iterable[tuple[str, bytes]] | None = None,
    ) -> asyncio.Future[Any]:
        """Send; waits only while the client's buffer is full."""
        ...


Done = Callable[[int, int], None]
"""(partition, next offset): may be committed."""

Committed = Callable[[int], int | None]
"""Committed offset of an events partition."""

Generation = Callable[[], int]
"""Group generation of the present assignment."""

ChangelogEnds = Callable[[AbstractSet[int]], Awaitable[Mapping[int, int]]]
"""End offsets of the changelog, by partition."""
