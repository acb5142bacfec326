"""The audit: is the live system judging as the recorded one?"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loopstream.replay.diff import Diff
from loopstream.replay.outputs import ReplayOutput
from loopstream.replay.recorded import VerdictTopic
from loopstream.replay.run import Job, Replayed, Report, replay

_AGAIN_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class Audit:
    """Recorded verdicts against replayed ones; runs whose beginning is gone are left out.

    Attributes:
        live: verdicts on the verdict topic, repetitions counted once.
        replayed: verdicts of the replay.
        identical: those that are equal, byte for byte.
    """

    live: int
    replayed: int
    identical: int
    replay: Replayed

    @property
    def success(self) -> bool:
        """All are equal, and there was something to compare."""
        return self.live == self.replayed == self.identical > 0

    def closing_line(self) -> str:
        """In one line."""
        return f"audit: live={self.live} replayed={self.replayed} identical={self.identical}"


def audit(
    job: Job,
    topic: VerdictTopic,
    folder: Path,
    *,
    patience_s: float = 0.0,
    report: Report | None = None,
) -> Audit:
    """Replay what was recorded and compare.

    Args:
        job: must write its verdicts.
        folder: for the replay's files.
        patience_s: how long to wait for verdicts that a worker may yet publish.

    Raises:
        LoopstreamError: as `replay` and `VerdictTopic.read`.
    """
    done = replay(job, folder, report)
    path = folder / "replayed.ndjson"
    with path.open("wb") as file:
        file.writelines(done.lines())
    deadline = time.monotonic() + patience_s
    while True:
        found = _compare(done, path, topic)
        if found.success or time.monotonic() > deadline:
            return found
        time.sleep(_AGAIN_S)


def _compare(done: Replayed, path: Path, topic: VerdictTopic) -> Audit:
    output = ReplayOutput(path)
    diff = Diff()
    try:
        diff.load_recorded("a", topic, output.head)
        diff.load_output("b", output)
        compared = diff.compare()
    finally:
        diff.close()
    sides, counts = compared.sides, compared.counts
    return Audit(sides["a"], sides["b"], counts["same"], done)
