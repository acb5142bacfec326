"""The exact upstream code that the hardening was written against."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any, Final

from aiokafka.consumer.fetcher import Fetcher
from aiokafka.consumer.group_coordinator import GroupCoordinator
from faust.app.base import App
from faust.tables.manager import TableManager
from faust.tables.recovery import Recovery
from faust.transport.conductor import Conductor
from faust.transport.consumer import Consumer, ThreadDelegateConsumer
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Producer
from faust.transport.drivers.aiokafka import Consumer as AIOKafkaConsumer
from mode.services import Service

from loopstream.errors import EXIT_SETTINGS, LoopstreamError

VERSIONS: Final = {"faust-streaming": "0.15.3", "mode-streaming": "0.7.1", "aiokafka": "0.14.0"}

# What is overridden, and what the overrides rely on.
WATCHED: Final[tuple[tuple[type, tuple[str, ...]], ...]] = (
    (
        Consumer,
        (
            "_wait_next_records",
            "getmany",
            "_drain_messages",
            "_filter_committable_offsets",
            "_commit_tps",
            "_commit_offsets",
            "_get_active_partitions",
            "_set_active_tps",
            "on_partitions_revoked",
            "on_partitions_assigned",
            "on_stop",
            "perform_seek",
            "stop_flow",
            "resume_flow",
            "wait_for_stopped_flow",
        ),
    ),
    (ThreadDelegateConsumer, ("threadsafe_partitions_revoked", "_getmany")),
    (AIOKafkaConsumer, ("_new_consumer_thread",)),
    (
        AIOKafkaConsumerThread,
        (
            "_create_worker_consumer",
            "_fetch_records",
            "_seek_wait",
            "_commit",
            "getmany",
            "seek_to_committed",
        ),
    ),
    # Its waits are set from outside (`fetching`).
    (Fetcher, ("__init__", "_get_actions_per_node", "_proc_fetch_request")),
    (Producer, ("send", "flush", "_settings_extra", "_new_producer")),
    (
        Recovery,
        (
            "_seek_offsets",
            "_restart_recovery",
            "_slurp_changelogs",
            "_wait",
            "_add",
            "_build_offsets",
            "_build_highwaters",
            "need_recovery",
            "on_rebalance",
            "on_recovery_completed",
            "revoke",
        ),
    ),
    (TableManager, ("recovery", "on_start", "on_rebalance", "_update_channels")),
    (Conductor, ("_subscriber", "_update_indices", "add")),
    (
        App,
        (
            "_new_conductor",
            "_new_producer",
            "_new_transport",
            "_on_partitions_assigned",
            "_on_partitions_revoked",
            "_stop_consumer",
            "on_start",
            "on_started",
            "on_stop",
        ),
    ),
    (Service, ("crash", "_crash", "stop", "wait_first", "_execute_task")),
    # It takes "still loading" for "never committed"; `opening.Start.offset` answers that.
    (GroupCoordinator, ("_do_fetch_commit_offsets",)),
)

SHA256: Final[dict[str, str]] = {
    "Consumer._wait_next_records": "6218e1969a636b3f",
    "Consumer.getmany": "4b168d84882a70d6",
    "Consumer._drain_messages": "44a2500309e83c63",
    "Consumer._filter_committable_offsets": "dc5e9baf5d994485",
    "Consumer._commit_tps": "a20e230b05ae8b15",
    "Consumer._commit_offsets": "1a69799041188441",
    "Consumer._get_active_partitions": "b24897f3c7afdb5d",
    "Consumer._set_active_tps": "401f4dc883191950",
    "Consumer.on_partitions_revoked": "d04b7ae72c6fc206",
    "Consumer.on_partitions_assigned": "29ce96596f05a18c",
    "Consumer.on_stop": "45b1d2210ce2b526",
    "Consumer.perform_seek": "0e8c130ff4b0afd8",
    "Consumer.stop_flow": "cf7e875a2b0d40e8",
    "Consumer.resume_flow": "db59630f25b5819b",
    "Consumer.wait_for_stopped_flow": "9a686a7f90a4e52b",
    "Consumer._new_consumer_thread": "0870ec53dea75083",
    "ThreadDelegateConsumer.threadsafe_partitions_revoked": "6c55d67e9eb06ca5",
    "ThreadDelegateConsumer._getmany": "f9d47aa9010b5ff2",
    "AIOKafkaConsumerThread._create_worker_consumer": "c2701bfc3e6f6cad",
    "AIOKafkaConsumerThread._fetch_records": "39a2c6c79fc1455a",
    "AIOKafkaConsumerThread._seek_wait": "9d221e816d940467",
    "AIOKafkaConsumerThread._commit": "932852ce7a23f658",
    "AIOKafkaConsumerThread.getmany": "26fc5fc9f3b667e1",
    "AIOKafkaConsumerThread.seek_to_committed": "775ab0adc4b052ab",
    "Fetcher.__init__": "bf21ecb7e0f210b7",
    "Fetcher._get_actions_per_node": "1dab2cf937d165d0",
    "Fetcher._proc_fetch_request": "59bf948fff47eed5",
    "Producer.send": "0b5bd08f52e5e2a9",
    "Producer.flush": "36d0cb3615f65b01",
    "Producer._settings_extra": "a4c7bc41b6382223",
    "Producer._new_producer": "e72355c3430ed02f",
    "Recovery._seek_offsets": "19598ca63d94d250",
    "Recovery._restart_recovery": "6bd8a8558a2dffe4",
    "Recovery._slurp_changelogs": "7825c7e50f766d5a",
    "Recovery._wait": "ec7429b70176f8c6",
    "Recovery._add": "1584a197b11bf835",
    "Recovery._build_offsets": "27eec86be06cb51f",
    "Recovery._build_highwaters": "91b4cc0d3724ae7b",
    "Recovery.need_recovery": "fd1dc345b5d5e121",
    "Recovery.on_rebalance": "aa4d997a1795ceae",
    "Recovery.on_recovery_completed": "6ef567acf072e46d",
    "Recovery.revoke": "779302ebfab0b2db",
    "TableManager.recovery": "f0bf5de78b4c3d23",
    "TableManager.on_start": "365dd25fbc0e0684",
    "TableManager.on_rebalance": "2d2c23a07bf54328",
    "TableManager._update_channels": "88e3941facc934d6",
    "Conductor._subscriber": "2a79085834048049",
    "Conductor._update_indices": "619b3247b96ac7d5",
    "Conductor.add": "9944e209d2cc2250",
    "App._new_conductor": "ef3dbf0ce1428ea7",
    "App._new_producer": "e7e1814e715d8b30",
    "App._new_transport": "42db531312dd776f",
    "App._on_partitions_assigned": "de932b7927db85b3",
    "App._on_partitions_revoked": "d5c895bbe57dc73a",
    "App._stop_consumer": "55854a5de12c3f52",
    "App.on_start": "480d70c6c72d042d",
    "App.on_started": "c03627f2dc44a1dd",
    "App.on_stop": "bfe5a933defb2324",
    "Service.crash": "14980000465df0af",
    "Service._crash": "7bc0c709a151d556",
    "Service.stop": "e17cd2b6bd01e861",
    "Service.wait_first": "feade6a31f8a6789",
    "Service._execute_task": "2a976a30f01cbbef",
    "GroupCoordinator._do_fetch_commit_offsets": "b0f3598132715552",
}


class UpstreamError(LoopstreamError):
    """The installed Faust is not the one that the hardening was written for."""

    code = "upstream"
    exit_code = EXIT_SETTINGS


def check_upstream() -> None:
    """Refuse to run on any other upstream code.

    Raises:
        UpstreamError: a version or the source of a method differs; the message names them.
    """
    changed = [*_changed_versions(), *_changed_sources()]
    if changed:
        raise UpstreamError(
            f"upstream differs from what the hardening was written for: {', '.join(changed)}.",
            hint="Install the pinned versions (pip install 'loopstream[worker]').",
        )


def fingerprints() -> Iterator[tuple[str, str]]:
    """Names and source digests of everything watched, as installed."""
    for owner, names in WATCHED:
        for name in names:
            yield f"{owner.__name__}.{name}", source_digest(owner, name)


def source_digest(owner: type, name: str) -> str:
    """First 16 hex digits of the SHA-256 of a method's source."""
    source = inspect.getsource(_function(inspect.getattr_static(owner, name)))
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def _function(member: Any) -> Any:
    if isinstance(member, property):
        return member.fget
    # mode wraps service tasks and transitions; the source is the wrapped function's.
    return inspect.unwrap(getattr(member, "fun", member))


def _changed_versions() -> Iterator[str]:
    for name, wanted in VERSIONS.items():
        installed = version(name)
        if installed != wanted:
            yield f"{name} {installed} (not {wanted})"


def _changed_sources() -> Iterator[str]:
    for name, digest in fingerprints():
        if SHA256.get(name) != digest:
            yield name
