"""Sequences the control sources into the events: the owner of a partition copies what is new.

A copy takes effect when it comes back in order, after the fold has checked it against the source.
Appending twice (a crash between) does no harm: what is at or below the last applied is ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loopstream.events import Control, ControlSource
from loopstream.partition import ControlSources
from loopstream.runtime.inlet import ChannelInlet
from loopstream.runtime.lanes import Lane, Lanes
from loopstream.runtime.ports import SendRecord
from loopstream.runtime.stats import Stats
from loopstream.wire.codec import encode_frame
from loopstream.wire.signing import Headers

_SOURCES: Final[tuple[ControlSource, ...]] = ("config", "commands")


class Sequencer:
    """Appends pending controls to the open partitions.

    Args:
        headers: makes a record's headers of its value.
    """

    def __init__(
        self,
        lanes: Lanes,
        inlet: ChannelInlet,
        sources: ControlSources,
        stats: Stats,
        topic: str,
        send: SendRecord,
        headers: Callable[[bytes], Headers],
    ) -> None:
        self._lanes = lanes
        self._inlet = inlet
        self._sources = sources
        self._stats = stats
        self._topic = topic
        self._send = send
        self._headers = headers

    async def append(self) -> None:
        """Append what no open partition has yet.

        Raises:
            Exception: the broker refused a record.
        """
        epoch = self._inlet.epoch
        for lane in self._lanes:
            ends = tuple(map(self._sources.next_offset, _SOURCES))
            if lane.sequenced == ends:
                continue
            lane.sequenced = ends
            for control in lane.fold.pending_controls():
                if epoch != self._inlet.epoch:
                    return
                await self._append(lane, control)

    async def _append(self, lane: Lane, control: Control) -> None:
        if control.offset <= lane.appended.get(control.source, -1):
            return
        lane.appended[control.source] = control.offset
        value = encode_frame([control])
        headers = self._headers(value)
        await (await self._send(self._topic, None, value, lane.number, headers))
        self._stats.controls += 1
