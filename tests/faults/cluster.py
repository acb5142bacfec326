"""What fault tests do to a cluster beside the workers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from tests.faults.harness import Cluster, wait_for

_PATIENCE_S: Final = 150.0


@contextlib.contextmanager
def refusing(bootstrap: str, topic: str) -> Iterator[None]:
    """For the block the broker takes no record for a topic (none is that small)."""
    alter(bootstrap, topic, {"max.message.bytes": "1"})
    try:
        yield
    finally:
        alter(bootstrap, topic, {"max.message.bytes": "1048588"})


def alter(bootstrap: str, topic: str, configs: dict[str, str]) -> None:
    """Change a topic's configuration."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs=configs)])
    finally:
        admin.close()


def supervise(
    cluster: Cluster,
    what: str,
    until: Callable[[], bool] | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
) -> None:
    """Start a worker whenever none lives, as a supervisor would.

    Args:
        what: is waited for.
        until: it holds; None: all is committed.
        settings: of the workers started.
    """

    def settled() -> bool:
        if not cluster.any_alive:
            cluster.worker(**(settings or {}))
        return cluster.lag() == 0 if until is None else until()

    wait_for(what, settled, _PATIENCE_S)
