from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from compose_spec import PyCompose

from loopstream.broker.lockfile import read_lock
from loopstream.config import load

OURS = ("topics", "worker-1", "worker-2", "dashboard")


def test_it_follows_the_compose_specification(compose: dict[str, Any]) -> None:
    services = PyCompose.from_json(json.dumps(compose)).service_names()
    assert {"kafka", "prometheus", "grafana", *OURS} <= set(services)


def test_what_the_specification_does_not_know_would_be_seen(compose: dict[str, Any]) -> None:
    kafka = compose["services"]["kafka"] | {"portz": ["1:1"]}
    wrong = compose | {"services": compose["services"] | {"kafka": kafka}}
    with pytest.raises(ValueError, match="portz"):
        PyCompose.from_json(json.dumps(wrong))


def test_everything_mounted_is_there(compose: dict[str, Any], root: Path) -> None:
    sources = [
        volume.split(":")[0]
        for service in compose["services"].values()
        for volume in service.get("volumes", ())
    ]
    files = [source for source in sources if source.startswith(".")]
    assert len(files) >= 5
    assert [file for file in files if not (root / file).is_file()] == []
    assert {source for source in sources if not source.startswith(".")} == set(compose["volumes"])


def test_only_the_loopback_is_published(compose: dict[str, Any]) -> None:
    published = [
        port for service in compose["services"].values() for port in service.get("ports", ())
    ]
    assert len(published) >= 4
    assert [port for port in published if not port.startswith("127.0.0.1:")] == []


def test_our_containers_can_change_nothing_of_themselves(compose: dict[str, Any]) -> None:
    for name in OURS:
        service = compose["services"][name]
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name


def test_workers_are_started_again_and_keep_their_names(compose: dict[str, Any]) -> None:
    workers = [compose["services"][name] for name in OURS if name.startswith("worker")]
    assert {worker["restart"] for worker in workers} == {"unless-stopped"}
    ids = {worker["environment"]["LOOPSTREAM_WORKER__INSTANCE_ID"] for worker in workers}
    assert len(ids) == len(workers)


@pytest.mark.parametrize("name", OURS)
def test_the_environment_is_settings_that_exist(
    compose: dict[str, Any], name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for key, value in compose["services"][name]["environment"].items():
        monkeypatch.setenv(key, value)
    settings = load().settings
    assert settings.bootstrap == "kafka:9092"
    if name == "dashboard":
        assert (settings.web.host, settings.web.port) == ("0.0.0.0", 8400)
    elif name != "topics":
        assert (settings.worker.metrics_host, settings.worker.metrics_port) == ("0.0.0.0", 9464)


def test_the_ui_is_there_for_those_who_ask(compose: dict[str, Any]) -> None:
    optional = [name for name, service in compose["services"].items() if "profiles" in service]
    assert optional == ["kafka-ui"]


def test_the_broker_is_the_one_that_the_tests_run_on(compose: dict[str, Any]) -> None:
    assert compose["services"]["kafka"]["image"] == f"apache/kafka:{read_lock().version}"


def test_prometheus_asks_both_workers(compose: dict[str, Any], root: Path) -> None:
    text = (root / "deploy/compose/prometheus.yml").read_text()
    assert "targets: [worker-1:9464, worker-2:9464]" in text
