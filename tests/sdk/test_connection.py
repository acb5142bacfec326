from pathlib import Path

import pytest
from kafka.net.sasl.oauth import AbstractTokenProvider
from pydantic import ValidationError

from loopstream.wire.connection import AsyncTokenFile, Connection, TokenFile


def test_a_text_is_split_into_brokers() -> None:
    connection = Connection.model_validate({"bootstrap": "a:1, b:2"})
    assert connection.bootstrap == ("a:1", "b:2")
    assert connection.for_kafka_python() == {
        "bootstrap_servers": ["a:1", "b:2"],
        "client_id": "loopstream",
        "security_protocol": "PLAINTEXT",
    }
    assert connection.for_aiokafka() == connection.for_kafka_python()


@pytest.mark.parametrize("bootstrap", ["", "a:1,,b:2", (), ("  ",)])
def test_an_empty_address_is_refused(bootstrap: object) -> None:
    with pytest.raises(ValidationError):
        Connection.model_validate({"bootstrap": bootstrap})


def scram(**more: object) -> Connection:
    return Connection.model_validate(
        {
            "bootstrap": "a:1",
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_username": "me",
            "sasl_password": "hunter2",
            "ssl_password": "letmein",
            **more,
        }
    )


def test_secrets_are_never_shown() -> None:
    shown = repr(scram()) + str(scram()) + scram().model_dump_json()
    assert "hunter2" not in shown
    assert "letmein" not in shown


def test_secrets_reach_the_client() -> None:
    kwargs = scram().for_kafka_python()
    assert kwargs["sasl_plain_password"] == "hunter2"
    assert kwargs["ssl_password"] == "letmein"


@pytest.mark.parametrize(
    "settings",
    [
        {"security_protocol": "SASL_SSL"},
        {"sasl_mechanism": "PLAIN"},
        {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_username": ""},
        {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"},
        {"ssl_keyfile": "key.pem"},
        {"sasl_mechanism": "GSSAPI"},
        {"password": "hunter2"},
    ],
)
def test_contradictions_are_refused_without_repeating_them(settings: dict[str, str]) -> None:
    with pytest.raises(ValidationError) as caught:
        Connection.model_validate({"sasl_password": "hunter2", **settings})
    assert "hunter2" not in str(caught.value)


async def test_tokens_are_read_anew_at_each_login(tmp_path: Path) -> None:
    path = tmp_path / "token"
    connection = Connection(
        security_protocol="SASL_PLAINTEXT", sasl_mechanism="OAUTHBEARER", sasl_token_file=path
    )
    provider = connection.for_kafka_python()["sasl_oauth_token_provider"]
    for token in ("one", "two"):
        path.write_text(f"{token}\n")
        assert provider.token() == token
    assert provider.extensions() == {}
    async_provider = connection.for_aiokafka()["sasl_oauth_token_provider"]
    assert await async_provider.token() == "two"


def test_token_providers_pass_the_libraries_checks() -> None:
    AbstractTokenProvider.register(TokenFile)
    assert isinstance(TokenFile(Path("x")), AbstractTokenProvider)
    assert AsyncTokenFile(Path("x")).extensions() == {}


def test_tls_files_become_a_context_for_aiokafka() -> None:
    context = Connection(security_protocol="SSL", ssl_check_hostname=False).for_aiokafka()
    assert context["ssl_context"].check_hostname is False


def test_a_missing_tls_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        Connection(security_protocol="SSL", ssl_cafile=tmp_path / "none.pem").for_aiokafka()
