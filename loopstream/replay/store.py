"""Rows and progress of one partition's replay: one SQLite file, so that memory stays constant.

With ``--state`` the file stays, and an interrupted replay goes on from its last checkpoint: rows,
position and length of the output are committed together.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from loopstream.errors import DataError
from loopstream.state.pack import peek

_SCHEMA: Final = """
create table if not exists rows(key blob primary key, row blob not null, appended int not null)
    without rowid;
create index if not exists by_age on rows(appended);
create table if not exists progress(id int primary key check (id = 1), value text not null);
"""


class ReplayStore:
    """Packed rows by scope key, and where the replay stands.

    Args:
        path: the file; made if it is not there.
        durable: survive a crash of the machine, not only of the process.

    Raises:
        DataError: the file is no state of a replay.
    """

    def __init__(self, path: Path, *, durable: bool) -> None:
        self._path = path
        self.inserted = 0
        try:
            self._db = sqlite3.connect(path, isolation_level=None)
            self._db.execute("pragma journal_mode = wal")
            self._db.execute(f"pragma synchronous = {'normal' if durable else 'off'}")
            self._db.execute("pragma cache_size = -16384")
            self._db.executescript(_SCHEMA)
        except sqlite3.DatabaseError as error:
            raise self._corrupt(error) from None

    def get(self, key: bytes) -> bytes | None:
        """The row under a scope key."""
        found = self._db.execute("select row from rows where key = ?", (key,)).fetchone()
        return None if found is None else found[0]

    def progress(self) -> dict[str, Any] | None:
        """What was committed last; None: nothing yet.

        Raises:
            DataError: it can't be read.
        """
        try:
            found = self._db.execute("select value from progress").fetchone()
            return None if found is None else dict(json.loads(found[0]))
        except (sqlite3.DatabaseError, ValueError) as error:
            raise self._corrupt(error) from None

    def commit(
        self, rows: Iterable[tuple[bytes, bytes]], progress: dict[str, Any], dead_before: int
    ) -> None:
        """Write rows and progress in one transaction, and drop rows idle since ``dead_before``."""
        packed = [(key, row, peek(row).appended) for key, row in rows]
        self._db.execute("begin")
        self._db.executemany("insert or replace into rows values (?, ?, ?)", packed)
        self._db.execute("delete from rows where appended < ? and appended > 0", (dead_before,))
        self._db.execute("insert or replace into progress values (1, ?)", (json.dumps(progress),))
        self._db.execute("commit")

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _corrupt(self, error: Exception) -> DataError:
        return DataError(
            f"is no usable state of a replay ({type(error).__name__}).",
            where=str(self._path),
            hint="Delete it, and the replay starts from the beginning.",
        )
