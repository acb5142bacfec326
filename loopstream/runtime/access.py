"""A connection, in the words of Faust and aiokafka."""

from __future__ import annotations

from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.abc import AbstractTokenProvider
from faust.auth import OAuthCredentials, SASLCredentials, SSLCredentials
from faust.types.auth import CredentialsT

from loopstream.wire.connection import AsyncTokenFile, Connection

AbstractTokenProvider.register(AsyncTokenFile)


def faust_options(connection: Connection) -> dict[str, Any]:
    """Settings of a Faust application that reach the connection's brokers.

    Raises:
        OSError: a TLS file can't be read.
    """
    options: dict[str, Any] = {
        "broker": [f"kafka://{server}" for server in connection.bootstrap],
        "broker_client_id": connection.client_id,
    }
    credentials = _credentials(connection)
    if credentials is not None:
        options["broker_credentials"] = credentials
    return options


def free_consumer(connection: Connection) -> Any:
    """An aiokafka consumer without a group: it starts at the beginning and commits nothing.

    Raises:
        OSError: a TLS file can't be read.
    """
    make: Any = AIOKafkaConsumer
    return make(
        **connection.for_aiokafka(),
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )


def _credentials(connection: Connection) -> CredentialsT | None:
    # Always a ready context: Faust can't build one for SSLCredentials() by itself.
    context = connection.ssl_context() if connection.uses_ssl else None
    if not connection.uses_sasl:
        return SSLCredentials(context) if context is not None else None
    if connection.sasl_mechanism == "OAUTHBEARER":
        given = connection.for_aiokafka()["sasl_oauth_token_provider"]
        return OAuthCredentials(oauth_cb=given, ssl_context=context)
    password = connection.sasl_password
    return SASLCredentials(
        username=connection.sasl_username,
        password=None if password is None else password.get_secret_value(),
        ssl_context=context,
        mechanism=connection.sasl_mechanism,
    )
