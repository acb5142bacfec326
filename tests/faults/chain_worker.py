"""A worker process with the chain fold; its settings are the JSON in its first argument."""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from loopstream.errors import LoopstreamError
from loopstream.policy.deployment import Deployment
from loopstream.runtime import app as runtime
from loopstream.runtime.settings import WorkerSettings
from loopstream.wire.connection import Connection
from tests.faults import hooks
from tests.faults.chain import ChainFold, marker_key, row_position


def main() -> int:
    given: dict[str, Any] = json.loads(sys.argv[1])
    ChainFold.padding = given.pop("padding", 0)
    ChainFold.every = given.pop("every", 10)
    stats = Path(given.pop("stats"))
    die = given.pop("die", None)
    if (limit := given.pop("file_size", None)) is not None:
        hooks.limit_file_size(limit)
    if (skew := given.pop("clock_skew_s", None)) is not None:
        hooks.skew_clock(skew)
    if (other := given.pop("producer_bootstrap", None)) is not None:
        hooks.produce_by(other)
    if "datadir" in given:
        given["datadir"] = Path(given["datadir"])
    settings = WorkerSettings(
        connection=Connection(bootstrap=given.pop("bootstrap")),
        deployment=Deployment(prefix=given.pop("prefix")),
        **given,
    )
    create, started = runtime.create_app, time.monotonic()

    def create_and_watch(*args: Any) -> runtime.WorkerApp:
        app = create(*args)
        if die is not None:
            hooks.die_at(app, *die)
        threading.Thread(target=report, args=(app, stats, started), daemon=True).start()
        return app

    vars(runtime)["create_app"] = create_and_watch
    try:
        return runtime.run_worker(settings, ChainFold, marker_key, row_position)
    except LoopstreamError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code


def report(app: runtime.WorkerApp, path: Path, started: float) -> None:
    """Write the counters to a file again and again, for the test to read after any end."""
    while True:
        level = {
            "up": round(time.monotonic() - started, 1),
            "lanes": {lane.number: lane.next_offset for lane in app.core.lanes},
            "generation": app.consumer_generation_id,
            "blocked": app.core.full(),
            "pending": app.core.outbox.pending,
        }
        text = json.dumps({**app.core.stats.as_dict(), **level})
        scratch = path.with_suffix(".new")
        scratch.write_text(text)
        scratch.replace(path)
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
