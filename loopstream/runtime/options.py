"""The settings of the Faust application."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from loopstream.config.logs import logging_config
from loopstream.errors import SettingsError
from loopstream.runtime.access import faust_options
from loopstream.runtime.hardening.recovery import BatchTableManager
from loopstream.runtime.rows import MemoryRows
from loopstream.runtime.settings import WorkerSettings
from loopstream.runtime.store import OpenRows, RunTable
from loopstream.runtime.topics import MAX_ROW_BYTES

RAW: dict[str, Any] = {
    "key_type": bytes,
    "value_type": bytes,
    "key_serializer": "raw",
    "value_serializer": "raw",
}
"""Bytes everywhere: what Faust can't decode it commits and drops (faust-streaming#175)."""


def rows_opener(settings: WorkerSettings) -> OpenRows:
    """Opens the rows of a partition where the settings want them.

    Raises:
        SettingsError: the durable store is not installed.
    """
    if settings.store == "memory":
        return lambda _partition: MemoryRows()
    if find_spec("rocksdict") is None:
        raise SettingsError(
            "the durable store is not installed.",
            where="worker.store",
            hint="Install it: pip install 'loopstream[durable]'.",
        )
    durable = import_module("loopstream.runtime.durable")
    return partial(durable.DurableRows, settings.datadir / settings.group)


def faust_settings(settings: WorkerSettings, partitions: int) -> dict[str, Any]:
    """Settings of the application for one worker process."""
    return {
        **faust_options(settings.connection),
        "autodiscover": False,
        "datadir": settings.datadir,
        "store": "memory://",
        "topic_partitions": partitions,
        # Topics are created by us alone, with the configuration that they need.
        "topic_allow_declare": False,
        "topic_disable_leader": True,
        "web_enabled": False,
        "table_standby_replicas": settings.standby_replicas,
        "consumer_group_instance_id": settings.instance_id,
        "consumer_auto_offset_reset": "earliest",
        "broker_commit_interval": min(1.0, settings.checkpoint_interval_s),
        "broker_session_timeout": settings.session_timeout_s,
        "broker_heartbeat_interval": settings.heartbeat_interval_s,
        "broker_rebalance_timeout": settings.rebalance_timeout_s,
        "broker_max_poll_interval": 300.0,
        "producer_request_timeout": settings.producer_timeout_s,
        "producer_max_batch_size": 256 * 1024,
        "producer_max_request_size": MAX_ROW_BYTES,
        # With True a stop under load waits for streams that nobody feeds any more.
        "stream_wait_empty": False,
        "agent_supervisor": "mode.supervisors.CrashingSupervisor",
        "Table": RunTable,
        "TableManager": BatchTableManager,
        "worker_redirect_stdouts": False,
        "logging_config": logging_config(settings.log_level, settings.log_format),
    }
