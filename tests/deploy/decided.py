"""A script: prints a digest of all that the fold decides and keeps, by profile.

Whatever build of loopstream runs it, over the shared real runs with loops spliced into them, must
print the same (`test_image.py`).
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))  # last: loopstream is the installed one

from benchmarks.detecting.splices import splices  # noqa: E402
from loopstream.partition import Partition, marker_key  # noqa: E402
from loopstream.policy.deployment import PROFILES, Deployment, Profile  # noqa: E402
from tests.partition.driver import START, Record, Sources, as_json  # noqa: E402

REAL: Final = ROOT.parent / "shared" / "real" / "runs.jsonl.gz"
LOOPS: Final = 60
# So often rows are taken; each second time the fold goes on from them alone.
CHECKPOINT: Final = 500


def main() -> None:
    """A line a profile: how many verdicts and rows there were, and their digest."""
    records = list(_records())
    for profile in PROFILES:
        print(profile, len(records), *decided(profile, records))  # noqa: T201


def decided(profile: Profile, records: list[bytes]) -> tuple[int, int, str]:
    """Verdicts, rows, and the SHA-256 of both in order."""
    deployment, sources = Deployment("p", profile=profile), Sources()
    rows: dict[bytes, bytes] = {}
    sources.push("config", "*", {"enabled": True})
    partition = Partition(deployment, 0, 1, rows, sources)
    verdicts = written = 0
    seen = hashlib.sha256()
    for offset, value in enumerate(records):
        partition.apply(Record(offset, value, START + offset * 100))
        if offset % CHECKPOINT == CHECKPOINT - 1 or offset == len(records) - 1:
            for _, verdict in partition.verdicts:
                seen.update(verdict.model_dump_json().encode())
            for key, row in partition.take_rows():
                seen.update(key + row)
                rows[key] = row
                written += 1
            verdicts += len(partition.verdicts)
            partition.verdicts.clear()
            if offset // CHECKPOINT % 2:
                state = rows[marker_key(0)]
                partition = Partition(deployment, 0, 1, rows, sources, state=state)
    return verdicts, written, seen.hexdigest()


def _records() -> Iterator[bytes]:
    runs = list(map(json.loads, gzip.decompress(REAL.read_bytes()).splitlines()))
    for number, spliced in enumerate(islice(splices(runs), LOOPS)):
        for event in spliced.events:
            if event["op"] in {"call", "outcome"}:
                yield as_json(_fields(event, f"run-{number}"))


def _fields(event: dict[str, Any], run: str) -> dict[str, Any]:
    kind = "tool_call" if event["op"] == "call" else "tool_outcome"
    raw: dict[str, Any] = {
        name: json.dumps(event[name]) for name in ("args", "result", "error") if name in event
    }
    kept = {name: event[name] for name in ("tool", "call_id") if event.get(name)}
    return {"v": 1, "type": kind, "run": run, "time": START, **kept, **raw}


if __name__ == "__main__":
    main()
