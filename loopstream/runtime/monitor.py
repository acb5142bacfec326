"""What can be seen of a running worker from outside: the HTTP port, and what it reads."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterator
from contextlib import suppress
from typing import Any, Final, Protocol, cast

from faust.types import TP

from loopstream.runtime.core import Core
from loopstream.runtime.endpoint import Endpoint
from loopstream.runtime.hardening.consumer import BatchConsumer
from loopstream.runtime.health import SHARE_OF_LIMIT, Health
from loopstream.runtime.lanes import Lanes
from loopstream.runtime.lifecycle import Lifecycle, connected
from loopstream.runtime.metrics import Exposition
from loopstream.runtime.settings import WorkerSettings
from loopstream.runtime.stats import Stats

log: Final = logging.getLogger("loopstream.worker")


class WatchedApp(Protocol):
    """What is needed of the application."""

    core: Core
    settings: WorkerSettings
    consumer: Any
    in_recovery: bool
    rebalancing: bool


class Monitor:
    """Reads a worker from another thread: counters, dictionaries and nothing that awaits."""

    def __init__(self, app: WatchedApp) -> None:
        settings = app.settings
        self._app = app
        self._endpoint: Endpoint | None = None
        limit = max(settings.progress_timeout_s, settings.recovery_timeout_s) * SHARE_OF_LIMIT
        self.health = Health(limit, self._ready)
        servers = ",".join(settings.connection.bootstrap)
        self._lifecycle = Lifecycle(app.core.topics.events, servers)

    @property
    def stats(self) -> Stats:
        """Of the worker."""
        return self._app.core.stats

    @property
    def lanes(self) -> Lanes:
        """Of the worker."""
        return self._app.core.lanes

    def open(self) -> None:
        """Open the port, if the settings name one.

        Raises:
            SettingsError: it can't be listened on.
        """
        settings = self._app.settings
        if settings.metrics_port is None:
            return
        host = settings.metrics_host
        endpoint = Endpoint(host, settings.metrics_port, Exposition(self), self.health)
        endpoint.start()
        self._endpoint = endpoint
        log.info("metrics at http://%s:%d/metrics", host, endpoint.port)

    def observe(self, progress: Hashable, *, waiting: bool) -> None:
        """Look once, from the event loop."""
        self.health.observe(progress, waiting=waiting)
        owned = (lane.number for lane in self.lanes) if self._ready() else None
        self._lifecycle.look(owned, connected=connected(self._app.consumer))

    def close(self) -> None:
        """The worker has stopped: close the port."""
        self._lifecycle.stopped()
        if self._endpoint is not None:
            self._endpoint.close()
            self._endpoint = None

    def build(self) -> tuple[str, str]:
        """Profile and mode of the deployment."""
        deployment = self._app.settings.deployment
        return deployment.profile, deployment.mode

    def lags(self) -> Iterator[tuple[int, int]]:
        """Partition, and records in it that are not yet applied."""
        consumer, topic = cast("BatchConsumer", self._app.consumer), self._app.core.topics.events
        for lane in self.lanes:
            end = None
            with suppress(Exception):  # between two assignments there is no high water
                end = consumer.highwater(TP(topic, lane.number))
            if end is not None:
                yield lane.number, max(0, end - lane.next_offset)

    def levels(self) -> tuple[int, int, float]:
        """Records buffered, messages not yet confirmed, time of the last checkpoint."""
        core = self._app.core
        return core.inlet.buffered, core.outbox.pending, core.checkpointer.last

    def healthy(self) -> tuple[bool, bool]:
        """Whether it is alive, and whether it is ready."""
        return self.health.live().ok, self.health.ready().ok

    def _ready(self) -> bool:
        app = self._app
        settled = app.core.settled_epoch == app.core.inlet.epoch
        return settled and not app.in_recovery and not app.rebalancing
