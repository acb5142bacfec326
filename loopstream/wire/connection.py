"""How to reach Kafka: one set of settings, and what each client library calls them.

Names follow Kafka's own. Secrets are masked wherever the settings are shown.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]

MAX_TOKEN_BYTES: Final = 64 * 1024
_LAST_PORT: Final = 65_535
_SHOWN: Final = 80


class Connection(BaseModel):
    """Everything that a client needs to know to reach the brokers.

    Raises:
        ValidationError: the settings contradict each other. What was given is not repeated in it.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
    )

    bootstrap: tuple[str, ...] = Field(default=("localhost:9092",), min_length=1)
    """Brokers to ask first, ``host:port`` each; a text is split at commas."""
    client_id: str = "loopstream"
    """Name under which the brokers log this client."""
    security_protocol: SecurityProtocol = "PLAINTEXT"
    sasl_mechanism: SaslMechanism | None = None
    sasl_username: str | None = None
    """For PLAIN and SCRAM."""
    sasl_password: SecretStr | None = None
    """For PLAIN and SCRAM."""
    sasl_token_file: Path | None = None
    """For OAUTHBEARER: a file that holds the token of the moment; read at each login."""
    ssl_cafile: Path | None = None
    """Authorities that the brokers' certificates must come from; absent: the system's."""
    ssl_certfile: Path | None = None
    """The client's own certificate, where brokers ask for one."""
    ssl_keyfile: Path | None = None
    ssl_password: SecretStr | None = None
    """Opens ``ssl_keyfile``."""
    ssl_check_hostname: bool = True

    @field_validator("bootstrap", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(_servers(value)) if isinstance(value, str) else value

    @field_validator("bootstrap")
    @classmethod
    def _named(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for server in value:
            if (why := address_fault(server)) is not None:
                raise ValueError(why)
        return value

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.sasl_mechanism is not None) is not self.uses_sasl:
            raise ValueError("sasl_mechanism and a SASL_* security_protocol go together")
        if self.sasl_mechanism == "OAUTHBEARER":
            if self.sasl_token_file is None:
                raise ValueError("OAUTHBEARER needs sasl_token_file")
        elif self.uses_sasl and not (self.sasl_username and self.sasl_password):
            raise ValueError(f"{self.sasl_mechanism} needs sasl_username and sasl_password")
        if self.ssl_keyfile is not None and self.ssl_certfile is None:
            raise ValueError("ssl_keyfile needs ssl_certfile")
        return self

    @property
    def uses_sasl(self) -> bool:
        """Whether the client has to log in."""
        return self.security_protocol.startswith("SASL")

    @property
    def uses_ssl(self) -> bool:
        """Whether the connection is encrypted."""
        return self.security_protocol.endswith("SSL")

    def for_kafka_python(self) -> dict[str, Any]:
        """Keyword arguments for clients of kafka-python.

        With OAUTHBEARER the token provider is a `TokenFile`, which the caller first registers
        with kafka-python's ``AbstractTokenProvider``: the library asks for that base class.
        """
        kwargs = self._common()
        if self.sasl_token_file is not None and self.sasl_mechanism == "OAUTHBEARER":
            kwargs["sasl_oauth_token_provider"] = TokenFile(self.sasl_token_file)
        if self.uses_ssl:
            kwargs |= {
                "ssl_check_hostname": self.ssl_check_hostname,
                "ssl_cafile": _text(self.ssl_cafile),
                "ssl_certfile": _text(self.ssl_certfile),
                "ssl_keyfile": _text(self.ssl_keyfile),
                "ssl_password": _reveal(self.ssl_password),
            }
        return kwargs

    def for_aiokafka(self) -> dict[str, Any]:
        """Keyword arguments for clients of aiokafka; reads the TLS files.

        With OAUTHBEARER the token provider is an `AsyncTokenFile`, to be registered as above.

        Raises:
            OSError: a TLS file can't be read.
        """
        kwargs = self._common()
        if self.sasl_token_file is not None and self.sasl_mechanism == "OAUTHBEARER":
            kwargs["sasl_oauth_token_provider"] = AsyncTokenFile(self.sasl_token_file)
        if self.uses_ssl:
            kwargs["ssl_context"] = self.ssl_context()
        return kwargs

    def ssl_context(self) -> ssl.SSLContext:
        """The TLS context that the files describe.

        Raises:
            OSError: a file can't be read, or is not what it should be.
        """
        context = ssl.create_default_context(cafile=_text(self.ssl_cafile))
        context.check_hostname = self.ssl_check_hostname
        if self.ssl_certfile is not None:
            context.load_cert_chain(self.ssl_certfile, self.ssl_keyfile, _reveal(self.ssl_password))
        return context

    def _common(self) -> dict[str, Any]:
        kwargs: dict[str, Any] = {
            "bootstrap_servers": list(self.bootstrap),
            "client_id": self.client_id,
            "security_protocol": self.security_protocol,
        }
        if self.sasl_mechanism is not None:
            kwargs["sasl_mechanism"] = self.sasl_mechanism
            if self.sasl_mechanism != "OAUTHBEARER":
                kwargs["sasl_plain_username"] = self.sasl_username
                kwargs["sasl_plain_password"] = _reveal(self.sasl_password)
        return kwargs


class TokenFile:
    """OAUTHBEARER tokens from a file that something else keeps fresh; for kafka-python."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def token(self) -> str:
        """The token of the moment.

        Raises:
            OSError: the file can't be read.
        """
        with self._path.open("rb") as file:
            return file.read(MAX_TOKEN_BYTES).decode("ascii", "replace").strip()

    def extensions(self) -> dict[str, str]:
        """SASL extensions: none."""
        return {}


class AsyncTokenFile:
    """As `TokenFile`, in the shape that aiokafka asks for."""

    def __init__(self, path: Path) -> None:
        self._file = TokenFile(path)

    async def token(self) -> str:
        """The token of the moment.

        Raises:
            OSError: the file can't be read.
        """
        return self._file.token()

    def extensions(self) -> dict[str, str]:
        """SASL extensions: none."""
        return {}


def address_fault(server: str) -> str | None:
    """What is wrong with a broker's address, in words; None: it is ``host:port``."""
    shown = server[:_SHOWN]
    if not server.strip():
        return "a broker's address is empty"
    if "://" in server:
        rest = shown.partition("://")[2].partition("/")[0]
        return f"{shown} is a URL; brokers speak Kafka's protocol: give host:port, such as {rest}"
    host, colon, port = server.rpartition(":")
    if not colon or (server.count(":") > 1 and not host.endswith("]")):
        return f"{shown} has no port: give host:port, such as {shown}:9092"
    if not host or any(letter.isspace() or letter == "/" for letter in host):
        return f"{shown} has no host that could be looked up: give host:port"
    if not (port.isascii() and port.isdigit() and 1 <= int(port[:6]) <= _LAST_PORT):
        return f"{shown} has no port from 1 to {_LAST_PORT} after the colon"
    return None


def _servers(text: str) -> list[str]:
    return [server.strip() for server in text.split(",")]


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _reveal(secret: SecretStr | None) -> str | None:
    return None if secret is None else secret.get_secret_value()
