"""The tree of process settings: names, types, bounds and defaults, and nothing else.

Times are seconds (``_s``). The texts below the fields are what ``loopstream config show`` prints.
"""

from __future__ import annotations

from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict

from loopstream.config.logs import LogFormat
from loopstream.errors import SettingsError
from loopstream.policy.deployment import Announce, Mode, Profile
from loopstream.wire.connection import (
    Connection,
    SaslMechanism,
    SecurityProtocol,
    address_fault,
)
from loopstream.wire.keys import MAX_KEYS_BYTES, MasterKey, read_master_keys
from loopstream.wire.signing import Verifier
from loopstream.wire.verdicts import Format

ENV_PREFIX: Final = "LOOPSTREAM_"
ENV_DELIMITER: Final = "__"
MAX_KEY_BYTES: Final = 4096

Seconds = Annotated[float, Field(gt=0, le=30 * 24 * 3600)]
Many = Annotated[int, Field(ge=1, le=10_000_000)]


def _addresses(text: str) -> str:
    for server in text.split(","):
        if (why := address_fault(server)) is not None:
            raise ValueError(why)
    return text


Servers = Annotated[str, AfterValidator(_addresses)]
Prefix = Annotated[str, Field(pattern=r"^[a-zA-Z0-9._-]{1,200}$")]


class _Section(BaseModel):
    """Base of all sections: values, unknown keys refused."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True
    )


class SecuritySettings(_Section):
    """How to talk to a secured cluster."""

    protocol: SecurityProtocol = "PLAINTEXT"
    """Security protocol of the brokers' listener."""
    mechanism: SaslMechanism | None = None
    """How to log in, where the protocol is a SASL one."""
    username: str | None = None
    """For PLAIN and SCRAM."""
    password: SecretStr | None = None
    """For PLAIN and SCRAM."""
    token_file: Path | None = None
    """For OAUTHBEARER: file that holds the token of the moment."""
    cafile: Path | None = None
    """Authorities that the brokers' certificates must come from, PEM; unset: the system's."""
    certfile: Path | None = None
    """The client's own certificate, PEM, where brokers ask for one."""
    keyfile: Path | None = None
    """The client's private key, PEM."""
    key_password: SecretStr | None = None
    """Opens the private key."""
    check_hostname: bool = True
    """Whether a broker's certificate must name the broker's host."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        self.connection(("localhost:9092",))
        return self

    def connection(self, bootstrap: tuple[str, ...]) -> Connection:
        """These settings, and which brokers to ask first, as clients take them.

        Raises:
            ValueError: the settings contradict each other.
        """
        try:
            return Connection(
                bootstrap=bootstrap,
                security_protocol=self.protocol,
                sasl_mechanism=self.mechanism,
                sasl_username=self.username,
                sasl_password=self.password,
                sasl_token_file=self.token_file,
                ssl_cafile=self.cafile,
                ssl_certfile=self.certfile,
                ssl_keyfile=self.keyfile,
                ssl_password=self.key_password,
                ssl_check_hostname=self.check_hostname,
            )
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            raise ValueError(first["msg"].removeprefix("Value error, ")) from None


class WorkerSettings(_Section):
    """One worker process. Nothing here changes a verdict."""

    checkpoint_interval_s: Seconds = 0.5
    """Shortest time between checkpoints: of few or hot runs, whose rows are cheap by the event."""
    checkpoint_max_interval_s: Seconds = 10.0
    """Longest time between checkpoints: changelog volume against replay after a crash."""
    max_dirty_rows: Many = 20_000
    """Changed rows at which a checkpoint starts early."""
    max_live_runs: Many = 50_000
    """Unpacked run states kept in memory, of all partitions together: 3 to 30 kB each."""
    session_timeout_s: Seconds = 12.0
    """Silence after which the group takes a worker's partitions away."""
    progress_timeout_s: Seconds = 120.0
    """Time with lag but no progress after which a worker exits, to be restarted."""
    instance_id: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    """Static membership: a worker that comes back under the same id keeps its partitions."""
    standby_replicas: Annotated[int, Field(ge=0, le=3)] = 0
    """Workers that follow a partition's changelog without owning it."""
    store: Literal["memory", "rocksdict"] = "memory"
    """Where rows are kept; the changelog holds them in any case."""
    datadir: Path = Path("loopstream-data")
    """Folder of the durable store; one worker each."""
    verdict_format: Format = "msgpack"
    """Form of the verdicts on the topic."""
    metrics_port: Annotated[int, Field(ge=0, le=65535)] | None = None
    """Port of metrics and health; 0: the system picks one; unset: none is opened."""
    metrics_host: Annotated[str, Field(min_length=1, max_length=253)] = "127.0.0.1"
    """Address that the metrics port is opened on: the loopback alone, unless told otherwise."""
    traces: bool = False
    """A span per checkpoint and verdict goes out over OTLP (extra ``otel``; ``OTEL_*`` say where).
    """


class DeploymentSettings(_Section):
    """What all workers of a prefix must share: it decides verdicts, and is pinned in the events."""

    profile: Profile = "documented"
    """Rules to judge by."""
    announce: Announce = "first"
    """When a warning is published: at once and then each further ten, or as the reference does."""
    mode: Mode = "enforce"
    """``shadow``: verdicts are published, and never acted on."""
    idle_s: Seconds = 24 * 3600
    """A run without events for longer is forgotten."""
    grace_s: Seconds = 15 * 60
    """So is one this long after its end."""
    capture: Literal["digests", "preview", "full"] = "digests"
    """How much of arguments and results events and dead letters may carry."""


def _read_file(path: Path, setting: str, longest: int) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(longest + 1)
    except OSError as error:
        message = f"can't be read: {error.strerror}."
        raise SettingsError(message, where=f"{setting} {path}") from None
    if not 0 < len(data.removesuffix(b"\n")) <= longest:
        raise SettingsError(f"is empty or over {longest} bytes.", where=f"{setting} {path}")
    return data


class TenantKeySettings(_Section):
    """The key of HMAC fingerprints."""

    id: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    """Name of the key, as in the events' ``key_id``."""
    secret: SecretStr | None = None
    """The key itself; better kept in a file."""
    file: Path | None = None
    """File that holds the key: all its bytes but a last newline."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        given = (self.secret is not None) + (self.file is not None)
        if given != (self.id is not None):
            raise ValueError("a key is an id with either a secret or a file")
        return self

    def read(self) -> bytes | None:
        """The key's bytes; None where no key is set.

        Raises:
            SettingsError: the file can't be read, or is empty or over 4 KiB.
        """
        if self.secret is not None:
            return self.secret.get_secret_value().encode()
        if self.file is None:
            return None
        return _read_file(self.file, "tenant_key.file", MAX_KEY_BYTES).removesuffix(b"\n")


class WebSettings(_Section):
    """The dashboard (``loopstream web``)."""

    host: Annotated[str, Field(min_length=1, max_length=253)] = "127.0.0.1"
    """Address to listen on; any other than the loopback needs a token or ``user_header``."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8400
    """Port to listen on; 0: the system picks one."""
    token: SecretStr | None = None
    """What operators sign in with, at least 16 characters; without one nobody can act."""
    token_file: Path | None = None
    """File that holds the token, instead."""
    user_header: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,64}$")] | None = None
    """Header in which a reverse proxy names who it has let in, such as ``X-Forwarded-User``."""
    trusted_proxies: Annotated[str, Field(max_length=1024)] = "127.0.0.0/8,::1/128"
    """Networks whose ``user_header`` is believed."""

    @model_validator(mode="after")
    def _one_token(self) -> Self:
        if self.token is not None and self.token_file is not None:
            raise ValueError("a token is given as text or as a file, not as both")
        for text in self.trusted_proxies.split(","):
            ip_network(text.strip())  # says itself what is wrong
        return self


class SigningSettings(_Section):
    """The master keys of signed records; runners are issued keys that are derived from them."""

    secret: SecretStr | None = None
    """The key itself, at least 32 bytes; better kept in a file."""
    file: Path | None = None
    """File of keys: lines `id:hex`, the first signs, all verify. Set: workers sign."""
    events: Literal["off", "verify", "required"] = "off"
    """Records of the events topic: signatures are ignored, checked if there, or needed."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if self.secret is not None and self.file is not None:
            raise ValueError("keys are either a secret or a file")
        return self

    def read(self) -> tuple[MasterKey, ...]:
        """The master keys, the one that signs first; none where none is set.

        Raises:
            SettingsError: the file can't be read, or holds something else.
        """
        if self.secret is not None:
            return read_master_keys(self.secret.get_secret_value().encode(), "signing.secret")
        if self.file is None:
            return ()
        data = _read_file(self.file, "signing.file", MAX_KEYS_BYTES)
        return read_master_keys(data, f"signing.file {self.file}")

    def verifier(self) -> Verifier | None:
        """Checks records of the events topic; None where they are not to be checked.

        Raises:
            SettingsError: as `read`; or they are to be checked, and there is no key to do it with.
        """
        if self.events == "off":
            return None
        if not (keys := self.read()):
            raise SettingsError(
                f"signing.events is {self.events}, and there is no key to check with.",
                where="signing.file",
                hint="Name the workers' keys, or trust the records with signing.events=off.",
            )
        return Verifier(keys, required=self.events == "required")


class LogSettings(_Section):
    """What goes to stderr."""

    level: Literal["debug", "info", "warning", "error"] = "warning"
    """Lowest level that is shown."""
    format: LogFormat = "text"
    """For people, or one JSON object a line."""


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

    bootstrap: Servers = "localhost:9092"
    """Brokers to ask first: ``host:port[,host:port...]``."""
    prefix: Prefix = "loopstream"
    """Begin of all topic names; one prefix is one tenant."""
    partitions: Annotated[int, Field(ge=1, le=1024)] = 4
    """Of the topics that ``topics create`` makes. It can't be changed later."""
    replication_factor: Annotated[int, Field(ge=1, le=15)] = 1
    """Copies of each partition on different brokers."""
    timeout_s: Annotated[float, Field(ge=1, le=60)] = 10.0
    """How long a command waits for Kafka before it gives up."""
    security: SecuritySettings = SecuritySettings()
    worker: WorkerSettings = WorkerSettings()
    deployment: DeploymentSettings = DeploymentSettings()
    tenant_key: TenantKeySettings = TenantKeySettings()
    signing: SigningSettings = SigningSettings()
    web: WebSettings = WebSettings()
    log: LogSettings = LogSettings()

    @property
    def connection(self) -> Connection:
        """How to reach Kafka."""
        return self.security.connection(tuple(self.bootstrap.split(",")))
