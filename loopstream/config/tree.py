"""The tree of process settings: names, types, bounds and defaults, and nothing else.

Durations are seconds unless a name says otherwise. Field descriptions are the documentation that
``loopstream config show`` and the reference page print.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from loopstream.policy.deployment import Announce, Mode, Profile

ENV_PREFIX: Final = "LOOPSTREAM_"
ENV_DELIMITER: Final = "__"

Seconds = Annotated[float, Field(gt=0, le=30 * 24 * 3600)]
Days = Annotated[float, Field(gt=0, le=3650)]
Partitions = Annotated[int, Field(ge=1, le=1024)]


class _Section(BaseModel):
    """Base of all sections: values, unknown keys refused."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True
    )


class SecuritySettings(_Section):
    """How to talk to a secured cluster. Names follow kafka-python's."""

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """Security protocol of the brokers' listener."""
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "SCRAM-SHA-512"
    """SASL mechanism, where the protocol is a SASL one."""
    username: str | None = None
    password: SecretStr | None = None
    cafile: Path | None = None
    """Certificate authorities to trust, PEM; absent: the system's."""
    certfile: Path | None = None
    """Client certificate, PEM (mutual TLS)."""
    keyfile: Path | None = None
    check_hostname: bool = True

    @model_validator(mode="after")
    def _complete(self) -> SecuritySettings:
        if self.protocol.startswith("SASL") and not (self.username and self.password):
            msg = "username and password are needed by SASL"
            raise ValueError(msg)
        return self


class TopicSettings(_Section):
    """What ``topics create`` gives the topics."""

    partitions: Partitions = 4
    """Of the events, verdicts and run topics alike. It can't be changed later."""
    replication_factor: Annotated[int, Field(ge=1, le=15)] = 1
    events_retention_days: Days = 7
    verdicts_retention_days: Days = 30
    dead_letters_retention_days: Days = 7


class WorkerSettings(_Section):
    """The stream processor."""

    checkpoint_interval: Seconds = 2.0
    """Between checkpoints: longer means fewer changelog bytes and a longer replay after a crash."""
    session_timeout: Seconds = 15.0
    """Without a heartbeat for so long, a worker's partitions go to another."""
    stall_timeout: Seconds = 60.0
    """With lag but no progress for so long, the worker exits for its supervisor to restart it."""
    instance_id: Annotated[str, Field(max_length=128)] | None = None
    """Static group membership: a restart under the same id within the session timeout moves no
    partitions."""
    standby: Annotated[int, Field(ge=0, le=3)] = 0
    """Standby replicas of the run table."""
    store: Literal["memory", "rocksdb"] = "memory"
    """Where run rows are kept between checkpoints; the changelog topic holds them in any case."""
    datadir: Path | None = None
    """Directory of the store; absent: a new one under the system's temporary directory."""
    metrics_host: str = "127.0.0.1"
    metrics_port: Annotated[int, Field(ge=0, le=65535)] | None = None
    """Serve metrics and health here; 0 lets the system choose a port; absent: do not serve."""


class DeploymentSettings(_Section):
    """What all workers of a prefix must share: it is pinned in the events topic."""

    profile: Profile = "documented"
    announce: Announce = "first"
    mode: Mode = "enforce"
    idle: Seconds = 24 * 3600
    """A run without events for longer is forgotten."""
    grace: Seconds = 15 * 60
    """An ended run is forgotten after this."""
    capture: Literal["digests", "preview", "full"] = "digests"
    """How much of arguments and results events and dead letters may carry."""


class TenantKeySettings(_Section):
    """The key of the HMAC fingerprints; only for workers that read raw events under a key."""

    id: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    """Name of the key, as in the events' ``key_id``."""
    secret: SecretStr | None = None
    file: Path | None = None
    """File that holds the secret (all its bytes but one last newline)."""

    @model_validator(mode="after")
    def _complete(self) -> TenantKeySettings:
        given = (self.secret is not None) + (self.file is not None)
        if given != (self.id is not None):
            msg = "a key is an id with either a secret or a file"
            raise ValueError(msg)
        return self


class LogSettings(_Section):
    """What goes to stderr."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["text", "json"] = "text"


class Settings(BaseSettings):
    """All process settings. Detector settings are not here: they live in the config topic."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        env_nested_delimiter=ENV_DELIMITER,
        env_ignore_empty=True,
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
    )

    bootstrap: Annotated[str, Field(pattern=r"^[^\s,]+:\d{1,5}(,[^\s,]+:\d{1,5})*$")] = (
        "localhost:9092"
    )
    """Brokers to ask first: ``host:port[,host:port…]``."""
    prefix: Annotated[str, Field(pattern=r"^[a-zA-Z0-9._-]{1,200}$")] = "loopstream"
    """Begin of all topic names; one prefix is one tenant."""
    timeout: Seconds = 10.0
    """How long a command waits for Kafka before it gives up."""
    topics: TopicSettings = TopicSettings()
    security: SecuritySettings = SecuritySettings()
    worker: WorkerSettings = WorkerSettings()
    deployment: DeploymentSettings = DeploymentSettings()
    tenant_key: TenantKeySettings = TenantKeySettings()
    log: LogSettings = LogSettings()
