"""A broker that asks who is there, encrypts, and refuses what no ACL allows."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ResourcePattern,
    ResourceType,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from loopstream.broker import EmbeddedKafka, Listener
from loopstream.cli.acls import rights
from loopstream.cli.examine import Role
from loopstream.runtime.admin import ensure_topics
from loopstream.wire.connection import Connection
from tests.security.certificates import KEY_PASSWORD, Authority

PASSWORD = "s3cret-of-all-users"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
TENANTS = ("acme", "rival", "works")
_MODULE = "org.apache.kafka.common.security"
_USERS = ("mallory", *(f"{tenant}-{role}" for tenant in TENANTS for role in Role))


@dataclass(frozen=True)
class Fort:
    """The broker's addresses, and the settings of whoever wants in."""

    broker: EmbeddedKafka
    authority: Authority
    folder: Path

    def security(self, user: str, mechanism: str = "SCRAM-SHA-512") -> dict[str, str]:
        """The settings block of a user, as in loopstream.toml."""
        block = {"protocol": "SASL_SSL", "mechanism": mechanism}
        block["cafile"] = str(self.authority.cafile)
        if mechanism == "OAUTHBEARER":
            return block | {"token_file": str(self._token(user))}
        return block | {"username": user, "password": PASSWORD}

    def mutual(self, user: str) -> dict[str, str]:
        """Likewise of one who shows a certificate."""
        own = self.authority.issue(user)
        return {
            "protocol": "SSL",
            "cafile": str(self.authority.cafile),
            "certfile": str(own.cert),
            "keyfile": str(own.key),
            "key_password": KEY_PASSWORD,
        }

    def _token(self, user: str) -> Path:
        """An unsigned token, which Kafka's test handler takes."""
        now = int(time.time())
        parts: tuple[dict[str, Any], ...] = (
            {"alg": "none"},
            {"sub": user, "iat": now - 5, "exp": now + 3600},
        )
        text = [base64.urlsafe_b64encode(json.dumps(part).encode()) for part in parts]
        file = self.folder / f"{user}.token"
        file.write_bytes(b".".join(part.rstrip(b"=") for part in text) + b".")
        return file


@pytest.fixture(scope="session")
def fort(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fort]:
    folder = tmp_path_factory.mktemp("fort")
    authority = Authority(folder)
    listeners = [Listener("LOGIN", "SASL_SSL"), Listener("MUTUAL", "SSL")]
    with EmbeddedKafka(
        folder / "kafka", listeners=listeners, properties=_properties(authority)
    ) as broker:
        _let_in(broker)
        yield Fort(broker, authority, folder)


@pytest.fixture(scope="session")
def tenants(fort: Fort) -> tuple[str, ...]:
    """Prefixes with their topics; every role of each has the rights that `acls` prints.

    In the last one a worker runs; in the others tests write what they may.
    """
    plain = Connection(bootstrap=(fort.broker.bootstrap,))
    admin = KafkaAdminClient(bootstrap_servers=fort.broker.bootstrap)
    for tenant in TENANTS:
        ensure_topics(plain, tenant, 2)
        admin.create_acls([acl for row in rights(tenant, list(Role)) for acl in _acls(row)])
    admin.close()
    return TENANTS


def _acls(row: dict[str, Any]) -> list[ACL]:
    pattern = ResourcePattern(ResourceType[row["resource"].upper()], row["name"])
    return [
        ACL(row["principal"], "*", ACLOperation[operation], ACLPermissionType.ALLOW, pattern)
        for operation in row["operations"]
    ]


def _let_in(broker: EmbeddedKafka) -> None:
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        refused = admin.alter_user_scram_credentials(
            [UserScramCredentialUpsertion(user, mechanism, PASSWORD) for user in _USERS]
        )
        assert not any(refused.values()), refused
    admin.close()


def _properties(authority: Authority) -> dict[str, str]:
    both = authority.issue("broker").both
    tls = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(both),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.cafile),
    }
    users = " ".join(f'user_{user}="{PASSWORD}"' for user in _USERS)
    scram = f"{_MODULE}.scram.ScramLoginModule required;"
    bearer = f"{_MODULE}.oauthbearer.OAuthBearerLoginModule required"
    jaas = {
        "plain": f"{_MODULE}.plain.PlainLoginModule required {users};",
        "scram-sha-256": scram,
        "scram-sha-512": scram,
        "oauthbearer": f'{bearer} unsecuredLoginStringClaim_sub="broker";',
    }
    login = {f"listener.name.login.{name}.sasl.jaas.config": text for name, text in jaas.items()}
    return {
        **{f"listener.name.login.{name}": value for name, value in tls.items()},
        **{f"listener.name.mutual.{name}": value for name, value in tls.items()},
        **login,
        "listener.name.mutual.ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/,DEFAULT",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        # The installer and the broker itself, on the main listener.
        "super.users": "User:ANONYMOUS",
    }
