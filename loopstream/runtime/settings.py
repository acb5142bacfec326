"""What one worker process is told. Nothing here changes a verdict: that is `Deployment`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from loopstream.config import Settings
from loopstream.config.logs import LogFormat
from loopstream.partition.admission import TenantKey
from loopstream.policy.deployment import Deployment
from loopstream.wire.connection import Connection
from loopstream.wire.keys import MasterKey
from loopstream.wire.signing import Verifier
from loopstream.wire.verdicts import Format

Store = Literal["memory", "rocksdict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """Settings of one worker process; times in seconds unless the name says otherwise."""

    connection: Connection
    deployment: Deployment
    partitions: int | None = None
    """Partition count that the topics must have; None: whatever the events topic has."""

    checkpoint_interval_s: float = 0.5
    """Shortest time between checkpoints: of few or hot runs, whose rows are cheap by the event."""
    checkpoint_max_interval_s: float = 10.0
    """Longest time between checkpoints: changelog volume against replay after a crash."""
    max_dirty_rows: int = 20_000
    """Changed rows at which a checkpoint starts early, and fetching pauses until it took them."""
    max_pending_verdicts: int = 10_000
    """Verdicts not yet confirmed by the broker at which fetching pauses."""
    max_buffered_bytes: int = 16 * 1024 * 1024
    """Records fetched but not yet applied at which fetching pauses; partitions share it."""
    max_live_runs: int = 50_000
    """Unpacked run states kept in memory, of all partitions together; the others stay packed rows.
    """

    session_timeout_s: float = 12.0
    """Silence after which the group takes the partitions away."""
    heartbeat_interval_s: float = 3.0
    rebalance_timeout_s: float = 20.0
    instance_id: str | None = None
    """Static membership: a worker that comes back under the same id keeps its partitions."""
    standby_replicas: int = 0
    """Workers that follow a partition's changelog without owning it."""

    store: Store = "memory"
    datadir: Path = Path("loopstream-data")
    """Folder of the durable store; one worker each."""

    verdict_format: Format = "msgpack"

    start_timeout_s: float = 10.0
    """Time in which a broker must answer at start."""
    producer_timeout_s: float = 90.0
    """Time a record may wait for its confirmation; after that the worker gives up."""
    recovery_timeout_s: float = 120.0
    """Time without progress in table recovery after which the worker gives up."""
    progress_timeout_s: float = 120.0
    """Time with lag but no progress after which the worker gives up."""
    audit_interval_s: float = 60.0
    """How often an idle worker looks for rows that somebody else wrote to its changelogs."""
    stop_timeout_s: float = 8.0
    """Time that a stop on request may take; then the process ends anyway."""

    tenant_key: TenantKey | None = None
    """The key that runners fingerprint with, where raw events are to be accepted too."""
    signing_keys: tuple[MasterKey, ...] = ()
    """Keys of what workers write, the one that signs first; none: nothing is signed."""
    verifier: Verifier | None = None
    """Checks who signed the events; None: nobody asks."""
    samples: bool = False
    """Dead letters carry the first bytes of what was refused."""

    log_level: str = "WARNING"
    log_format: LogFormat = "text"
    metrics_port: int | None = None
    """Port of metrics and health; 0: the system picks one; None: no port is opened."""
    metrics_host: str = "127.0.0.1"
    traces: bool = False
    """Whether spans go out over OTLP."""

    @property
    def group(self) -> str:
        """Consumer group, Faust application id and prefix of the changelog's name."""
        return f"{self.deployment.prefix}.worker"


def deployment_of(settings: Settings) -> Deployment:
    """What all processes of a prefix agree on."""
    deployment = settings.deployment
    return Deployment(
        prefix=settings.prefix,
        profile=deployment.profile,
        announce=deployment.announce,
        mode=deployment.mode,
        idle_ms=int(deployment.idle_s * 1000),
        grace_ms=int(deployment.grace_s * 1000),
        key_id=settings.tenant_key.id,
    )


def worker_settings(settings: Settings) -> WorkerSettings:
    """What one worker needs of the process settings.

    Raises:
        SettingsError: a key can't be read, or the one to verify events with is missing.
    """
    worker = settings.worker
    secret, key_id = settings.tenant_key.read(), settings.tenant_key.id
    return WorkerSettings(
        connection=settings.connection,
        deployment=deployment_of(settings),
        checkpoint_interval_s=worker.checkpoint_interval_s,
        checkpoint_max_interval_s=worker.checkpoint_max_interval_s,
        max_dirty_rows=worker.max_dirty_rows,
        max_live_runs=worker.max_live_runs,
        session_timeout_s=worker.session_timeout_s,
        progress_timeout_s=worker.progress_timeout_s,
        instance_id=worker.instance_id,
        standby_replicas=worker.standby_replicas,
        store=worker.store,
        datadir=worker.datadir,
        verdict_format=worker.verdict_format,
        tenant_key=TenantKey(key_id, secret) if key_id and secret else None,
        signing_keys=settings.signing.read(),
        verifier=settings.signing.verifier(),
        samples=settings.deployment.capture == "full",
        start_timeout_s=settings.timeout_s,
        log_level=settings.log.level.upper(),
        log_format=settings.log.format,
        metrics_port=worker.metrics_port,
        metrics_host=worker.metrics_host,
        traces=worker.traces,
    )
