"""The embedded broker itself: real Kafka, brokers of their own per test."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ResourcePattern,
    ResourceType,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kafka.errors import KafkaError

from loopstream.broker import EmbeddedKafka, Listener
from loopstream.errors import BrokerError

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]


def create_topic(bootstrap: str, topic: str, **more: Any) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap, **more)
    admin.create_topics({topic: {"num_partitions": 1}}, wait_for_metadata=True)
    admin.close()


def produce(bootstrap: str, topic: str, values: list[bytes], **more: Any) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap, **more)
    try:
        futures = [producer.send(topic, value) for value in values]
        for future in futures:
            future.get(timeout=60)
    finally:
        producer.close()


def consume(bootstrap: str, topic: str, count: int, **more: Any) -> list[bytes]:
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=f"{topic}-readers",
        auto_offset_reset="earliest",
        session_timeout_ms=6000,
        heartbeat_interval_ms=2000,
        consumer_timeout_ms=60_000,
        **more,
    )
    values: list[bytes] = []
    for record in consumer:
        values.append(record.value)
        if len(values) == count:
            break
    consumer.close()
    return values


class Proxy:
    """Forwards connections to ``upstream`` and counts them."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self.upstream = ("127.0.0.1", 0)
        self.connections = 0

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                self.connections += 1
                server = socket.create_connection(self.upstream)
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=self._pump, args=pair, daemon=True).start()

    @staticmethod
    def _pump(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError), source:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[EmbeddedKafka]:
    """A broker of the test's own, with a data folder that stays, not started yet."""
    broker = EmbeddedKafka(tmp_path / "data")
    yield broker
    broker.stop()


def test_records_go_in_and_come_out_of_a_classic_group(bootstrap: str, prefix: str) -> None:
    create_topic(bootstrap, prefix)
    produce(bootstrap, prefix, [b"one", b"two"])
    assert consume(bootstrap, prefix, 2) == [b"one", b"two"]


def test_topics_are_not_created_on_demand(kafka: EmbeddedKafka, prefix: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    admin.describe_topics([prefix])
    assert prefix not in admin.list_topics()
    admin.close()


def test_a_killed_broker_comes_back_with_its_data_on_its_port(
    kept: EmbeddedKafka, prefix: str
) -> None:
    kept.start()
    bootstrap, first = kept.bootstrap, kept.pid
    create_topic(bootstrap, prefix)
    produce(bootstrap, prefix, [b"before"])
    kept.kill()
    assert not listens(bootstrap)

    kept.start()
    assert kept.bootstrap == bootstrap
    assert kept.pid not in {None, first}
    produce(bootstrap, prefix, [b"after"])
    assert consume(bootstrap, prefix, 2) == [b"before", b"after"]

    kept.stop()
    with EmbeddedKafka(kept.data_dir) as another:
        assert another.bootstrap == bootstrap
        produce(bootstrap, prefix, [b"last"])
        assert consume(bootstrap, prefix, 1) == [b"last"]


def test_a_data_folder_serves_one_broker_at_a_time(kept: EmbeddedKafka) -> None:
    kept.start()
    second = EmbeddedKafka(kept.data_dir)
    with pytest.raises(BrokerError, match=rf"another broker \(process {kept.pid}\)"):
        second.start()
    assert kept.pid is not None


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        broker = EmbeddedKafka(tmp_path, port=port)
        with pytest.raises(BrokerError, match=f"port {port} is in use"):
            broker.start()
    assert broker.pid is None


def test_a_broker_that_ends_shows_its_log(tmp_path: Path) -> None:
    broker = EmbeddedKafka(tmp_path, properties={"num.io.threads": "none"})
    with pytest.raises(BrokerError, match=r"num\.io\.threads") as caught:
        broker.start()
    assert "A property given to the broker is wrong" in str(caught.value)
    assert broker.pid is None


def test_a_temporary_folder_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with EmbeddedKafka() as broker:
        folder, pid = broker.data_dir, broker.pid
        assert folder.parent == tmp_path
        assert broker.log_path.exists()
    assert not folder.exists()
    assert pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(BrokerError, match="not started"):
        _ = broker.data_dir


def test_tools_read_what_the_broker_wrote(kept: EmbeddedKafka, prefix: str) -> None:
    kept.start()
    create_topic(kept.bootstrap, prefix)
    produce(kept.bootstrap, prefix, [b"dump me"])
    segment = kept.data_dir / "kafka" / f"{prefix}-0" / f"{0:020}.log"
    dump = kept.run_tool(
        "kafka.tools.DumpLogSegments", ["--print-data-log", "--files", str(segment)]
    )
    assert dump.returncode == 0, dump.stderr
    assert "payload: dump me" in dump.stdout
    missing = kept.run_tool("kafka.tools.NoSuchTool")
    assert missing.returncode != 0


def test_a_proxied_listener_sends_clients_to_the_proxy(tmp_path: Path, prefix: str) -> None:
    with Proxy() as proxy:
        listener = Listener("PROXIED", advertised_port=proxy.port)
        with EmbeddedKafka(tmp_path, listeners=[listener]) as broker:
            proxy.upstream = tuple_of(broker.address("PROXIED"))
            create_topic(broker.bootstrap, prefix)
            assert proxy.connections == 0
            produce(broker.address("PROXIED"), prefix, [b"by the proxy"])
            assert proxy.connections > 0
            assert consume(broker.bootstrap, prefix, 1) == [b"by the proxy"]


def test_scram_and_acls_on_a_second_listener(tmp_path: Path, prefix: str) -> None:
    properties = {
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "listener.name.secured.scram-sha-256.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    secured = Listener("SECURED", "SASL_PLAINTEXT")
    with EmbeddedKafka(tmp_path, listeners=[secured], properties=properties) as broker:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        admin.alter_user_scram_credentials(
            [UserScramCredentialUpsertion("jane", ScramMechanism.SCRAM_SHA_256, "secret")]
        )
        create_topic(broker.bootstrap, prefix)
        create_topic(broker.bootstrap, f"{prefix}-closed")
        admin.create_acls([allow_write("User:jane", prefix)])
        admin.close()
        login = {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "SCRAM-SHA-256",
            "sasl_plain_username": "jane",
            "sasl_plain_password": "secret",
            "enable_idempotence": False,
        }
        produce(broker.address("SECURED"), prefix, [b"allowed"], **login)
        with pytest.raises(KafkaError):
            produce(
                broker.address("SECURED"), f"{prefix}-closed", [b"no"], max_block_ms=5000, **login
            )
        assert consume(broker.bootstrap, prefix, 1) == [b"allowed"]


def test_the_command_runs_until_sigterm(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "loopstream.broker", "--data-dir", str(tmp_path / "data")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as command:
        assert command.stdout is not None
        bootstrap = command.stdout.readline().strip()
        create_topic(bootstrap, "by-hand")
        with pytest.raises(BrokerError, match="another broker"):
            EmbeddedKafka(tmp_path / "data").start()
        command.send_signal(signal.SIGTERM)
        assert command.wait(60) == 0
    assert not listens(bootstrap)


def test_a_killed_parent_leaves_a_folder_that_starts_again(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "loopstream.broker", "--data-dir", str(tmp_path / "data")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as command:
        assert command.stdout is not None
        bootstrap = command.stdout.readline().strip()
        create_topic(bootstrap, "still-there")
        command.kill()
    with EmbeddedKafka(tmp_path / "data") as broker:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        assert "still-there" in admin.list_topics()
        admin.close()


def listens(address: str) -> bool:
    try:
        socket.create_connection(tuple_of(address), timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True


def tuple_of(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


def allow_write(principal: str, topic: str) -> ACL:
    return ACL(
        principal=principal,
        host="*",
        operation=ACLOperation.WRITE,
        permission_type=ACLPermissionType.ALLOW,
        resource_pattern=ResourcePattern(ResourceType.TOPIC, topic),
    )
