"""The store behind the Faust table: packed rows, partition by partition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Any, NoReturn

from faust.stores.base import Store
from faust.tables import Table
from faust.types import TP, StoreT

from loopstream.runtime.fold import RowPosition
from loopstream.runtime.rows import MemoryRows, Merge, PartitionRows

OpenRows = Callable[[int], PartitionRows]


class RowStore(Store[bytes, bytes]):
    """Rows of the partitions that this worker owns or stands by for.

    Only checkpoints write to it (`PartitionRows.put`): assigning to the table would make a
    changelog record at once, without the order of a checkpoint, so it is refused.
    """

    table: RunTable

    def __post_init__(self) -> None:
        self._merges: dict[int, Merge] = {}
        self._partitions: dict[int, PartitionRows] = {}

    def rows(self, partition: int) -> PartitionRows:
        """The rows of one partition, opened on first use."""
        if partition not in self._partitions:
            rows = self.table.open_rows(partition)
            self._partitions[partition] = rows
            self._merges[partition] = Merge(rows, self.table.position)
        return self._partitions[partition]

    def apply(self, partition: int, records: Iterable[Any]) -> None:
        """Apply changelog records; a late row can't win."""
        self.rows(partition)
        self._merges[partition].apply(records)

    def take_better(self, partition: int) -> list[tuple[bytes, bytes]]:
        """Rows that are better than the last record of their key in the changelog."""
        rows, merge = self.rows(partition), self._merges[partition]
        keys, merge.better = merge.better, set()
        return [(key, row) for key in keys if (row := rows.get(key)) is not None]

    def keep_only(self, partitions: AbstractSet[int]) -> None:
        """Let go of the rows of all other partitions."""
        for partition in self._partitions.keys() - partitions:
            rows = self._partitions.pop(partition)
            del self._merges[partition]
            close = getattr(rows, "close", None)
            if close is not None:
                close()

    async def on_stop(self) -> None:
        """Let go of everything."""
        self.keep_only(frozenset())

    def persisted_offset(self, tp: TP) -> int | None:
        """Changelog offset from which recovery goes on: what these rows really hold."""
        return self.rows(tp.partition).applied

    def set_persisted_offset(self, tp: TP, offset: int) -> None:
        """Not Faust's to say: `Merge` and the checkpoint know."""

    def reset_state(self) -> None:
        """Nothing to remove here: durable rows are checked, never trusted."""

    async def backup_partition(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Not offered: the changelog is the backup."""
        raise NotImplementedError("the changelog is the backup")

    def restore_backup(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Not offered: rows are recovered from the changelog."""
        raise NotImplementedError("rows are recovered from the changelog")

    def __getitem__(self, key: bytes) -> bytes:
        for rows in self._partitions.values():
            row = rows.get(key)
            if row is not None:
                return row
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return any(rows.get(key) is not None for rows in self._partitions.values())  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[bytes]:
        for rows in list(self._partitions.values()):
            yield from rows

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __setitem__(self, key: bytes, value: bytes) -> NoReturn:
        raise TypeError("rows are written by checkpoints only")

    def __delitem__(self, key: bytes) -> NoReturn:
        raise TypeError("rows are erased by checkpoints only")

    def apply_changelog_batch(self, batch: Any, to_key: Any, to_value: Any) -> None:
        """Faust's own path into the store; the records come through `apply` instead."""
        if batch:
            raise TypeError("changelog records are applied in batches by BatchRecovery")


class RunTable(Table[bytes, bytes]):
    """A Faust table of packed rows in a `RowStore`."""

    open_rows: OpenRows = staticmethod(lambda _partition: MemoryRows())
    position: RowPosition

    def _new_store(self) -> StoreT[bytes, bytes]:
        return RowStore(
            "memory://",
            self.app,
            self,
            table_name=self.name,
            key_type=bytes,
            value_type=bytes,
            key_serializer="raw",
            value_serializer="raw",
            loop=self.loop,
        )
