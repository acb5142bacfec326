"""The pure fold of one events partition: records in, verdicts, dead letters and rows out.

The worker and replay are shells around it. `Partition.apply` reads a record, asks `admission`
whether each event may count, and lets the engine step its run.
"""

from loopstream.partition.fold import Partition
from loopstream.partition.marker import (
    MARKER_PREFIX,
    deployment_from_pin,
    marker_key,
    row_position,
    state_from_pin,
)
from loopstream.partition.sources import ControlSources, SourceRecord

__all__ = [
    "MARKER_PREFIX",
    "ControlSources",
    "Partition",
    "SourceRecord",
    "deployment_from_pin",
    "marker_key",
    "row_position",
    "state_from_pin",
]
