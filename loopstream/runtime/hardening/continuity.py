"""No offset may be missing within an assignment.

Answers: events skipped at a rebalance (faust-streaming#596, robinhood/faust#115) and commits past
them (faust-streaming#606, #312). The first record of an assignment must have the committed offset,
each next one last + 1. A jump is checked against the log itself, since two kinds are honest:
retention deleted the records, or a transactional client's markers took the offsets.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable


class ContinuityError(Exception):
    """Records between two offsets exist in the log but did not arrive."""


class OffsetRegressionError(ContinuityError):
    """An offset came that is below the next one expected."""


FirstAtOrAfter = Callable[[int, int], Awaitable[int]]
"""(partition, offset) -> offset of the first record in the log at or after it."""


async def explain_jump(
    partition: int, expected: int, offset: int, first_at_or_after: FirstAtOrAfter
) -> int:
    """Number of offsets that the log itself does not have between ``expected`` and ``offset``.

    Raises:
        ContinuityError: the jump is not explained by the log.
    """
    place = f"partition {partition}: expected offset {expected}, got {offset}"
    if offset < expected:
        raise OffsetRegressionError(
            f"{place}; was the topic deleted and created again under a live group?"
        )
    first = await first_at_or_after(partition, expected)
    if first != offset:
        raise ContinuityError(f"{place}, but the log has {first}")
    return offset - expected
