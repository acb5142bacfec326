"""Parquet files of `loopstream export`, as records again."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import duckdb
import msgpack
from pydantic import ValidationError

from loopstream.errors import DataError
from loopstream.events import EVENT
from loopstream.replay.records import FileRecord
from loopstream.replay.tables import connect_readonly, lock
from loopstream.wire.codec import CONTENT_TYPE, FRAME_TYPE, WHOLE_RECORD, event_fields

_FETCH: Final = 2000
_QUERY: Final = """
select "partition", "offset", epoch_ms(append_time), key, "index", event
from events order by "partition", "offset", "index"
"""


def read_parquet(path: Path) -> Iterator[FileRecord]:
    """The records whose events a file holds, in order; a frame is put together again.

    Raises:
        DataError: it is no Parquet, or no export of events.
    """
    with tempfile.TemporaryDirectory(prefix="loopstream-parquet-") as folder:
        db = connect_readonly({"events": path}, Path(folder))
        try:
            lock(db)
            rows = _rows(db.execute(_QUERY))
            for _, group in groupby(rows, key=lambda row: (row[0], row[1])):
                yield _record(list(group), path)
        except duckdb.Error as error:
            message = f"can't be read ({type(error).__name__})."
            raise DataError(message, where=str(path)) from None
        finally:
            db.close()


def _rows(result: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    while rows := result.fetchmany(_FETCH):
        yield from rows


def _record(rows: list[tuple[Any, ...]], path: Path) -> FileRecord:
    partition, offset, append_time, key, *_ = rows[0]
    events: dict[int, Any] = {}
    for *_, index, event in rows:
        if index == WHOLE_RECORD:
            # Nothing of it could be used then, nor can it be now.
            return FileRecord(partition, offset, append_time, None, b"\xc1")
        events[index] = None if event is None else _event(event, f"{path}: {partition}@{offset}")
    frame = [events.get(index) for index in range(max(events) + 1)]
    value = bytes(msgpack.packb({"v": 1, "events": frame}))
    headers = ((CONTENT_TYPE, FRAME_TYPE),)
    return FileRecord(
        partition, offset, append_time, None if key is None else key.encode(), value, headers
    )


def _event(text: str, where: str) -> Mapping[str, Any]:
    try:
        return event_fields(EVENT.validate_json(text))
    except (ValidationError, json.JSONDecodeError):
        raise DataError("a row that is no event.", where=where) from None
