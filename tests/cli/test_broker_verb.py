from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from kafka.admin import KafkaAdminClient

from tests.e2e.house import STOP_S, environment

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def test_the_broker_serves_until_it_is_told_to_stop() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "loopstream", "broker"],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        client = KafkaAdminClient(bootstrap_servers=address)
        assert client.list_topics() == []
        client.close()
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=STOP_S)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, err
    assert out == ""
    assert "stop with Ctrl-C" in err
