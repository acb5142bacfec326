from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes_validate.utils import ValidationError, validate

from loopstream.config import load
from loopstream.runtime.topics import Topics, plan

KUBERNETES = "1.33"
CUSTOM = {"ScaledObject", "TriggerAuthentication", "PodMonitor", "PrometheusRule"}
STRIMZI = {"KafkaTopic", "KafkaUser"}
TARGETS = ("overlays/small", "overlays/production", "strimzi")

PODS = (("StatefulSet", "loopstream"), ("Deployment", "loopstream-dashboard"))

Doc = dict[str, Any]


def _documents(path: Path) -> list[Doc]:
    return [doc for doc in yaml.safe_load_all(path.read_text()) if doc]


@pytest.fixture(scope="session")
def files(root: Path) -> dict[Path, list[Doc]]:
    """Every manifest of ``deploy/`` by path, built or not."""
    found = [
        *(root / "deploy/kubernetes").rglob("*.yaml"),
        *(root / "deploy/monitoring").glob("*.yaml"),
    ]
    return {path: _documents(path) for path in sorted(found)}


@pytest.fixture(scope="session")
def built(root: Path) -> dict[str, list[Doc]]:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("NOT CHECKED: no kubectl here, the overlays were not built")
    return {target: _build(kubectl, root / "deploy/kubernetes" / target) for target in TARGETS}


def _build(kubectl: str, folder: Path) -> list[Doc]:
    done = subprocess.run(
        [kubectl, "kustomize", str(folder)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "deprecated" not in done.stderr, done.stderr
    return [doc for doc in yaml.safe_load_all(done.stdout) if doc]


def _one(docs: list[Doc], kind: str, name: str = "loopstream") -> Doc:
    (found,) = [doc for doc in docs if doc["kind"] == kind and doc["metadata"]["name"] == name]
    return found


def test_what_a_kustomization_names_is_there(files: dict[Path, list[Doc]]) -> None:
    for path, (doc, *_) in files.items():
        if doc["kind"] in {"Kustomization", "Component"}:
            for name in _named(doc):
                assert (path.parent / name).exists(), f"{path}: {name}"


def _named(doc: Doc) -> Iterator[str]:
    yield from doc.get("resources", ())
    yield from doc.get("components", ())
    yield from (patch["path"] for patch in doc.get("patches", ()) if "path" in patch)
    for made in doc.get("configMapGenerator", ()):
        yield from made["files"]


def test_no_manifest_lies_unused(files: dict[Path, list[Doc]]) -> None:
    used = {
        (path.parent / name).resolve()
        for path, (doc, *_) in files.items()
        if doc["kind"] in {"Kustomization", "Component"}
        for name in _named(doc)
    }
    manifests = {path.resolve() for path in files if path.name != "kustomization.yaml"}
    assert manifests - used == set()


@pytest.mark.parametrize("target", TARGETS)
def test_the_build_is_valid(built: dict[str, list[Doc]], target: str) -> None:
    for doc in built[target]:
        if doc["kind"] in CUSTOM | STRIMZI:
            assert doc["apiVersion"].count("/") == 1
            assert doc["spec"]
        else:
            validate(doc, KUBERNETES, strict=True)


def test_a_misspelt_field_would_be_seen(built: dict[str, list[Doc]]) -> None:
    doc = _one(built["overlays/small"], "StatefulSet")
    with pytest.raises(ValidationError):
        validate(doc | {"spec": doc["spec"] | {"replicaz": 1}}, KUBERNETES, strict=True)


@pytest.mark.parametrize("target", TARGETS[:2])
@pytest.mark.parametrize(("kind", "name"), PODS)
def test_pods_are_what_the_baseline_asks_for(
    built: dict[str, list[Doc]], target: str, kind: str, name: str
) -> None:
    pod = _one(built[target], kind, name)["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert not container["securityContext"]["allowPrivilegeEscalation"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    # A service named "loopstream" would set LOOPSTREAM_PORT, an unknown setting: no start.
    assert pod["enableServiceLinks"] is False
    assert {"livenessProbe", "readinessProbe", "startupProbe"} <= container.keys()


@pytest.mark.parametrize("target", TARGETS[:2])
def test_selectors_meet_the_pods(built: dict[str, list[Doc]], target: str) -> None:
    docs = built[target]
    labels = _one(docs, "StatefulSet")["spec"]["template"]["metadata"]["labels"]
    selectors = [
        _one(docs, "StatefulSet")["spec"]["selector"]["matchLabels"],
        _one(docs, "Service")["spec"]["selector"],
        _one(docs, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        _one(docs, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
    ]
    for selector in selectors:
        assert selector
        assert selector.items() <= labels.items()


@pytest.mark.parametrize("target", TARGETS[:2])
def test_selectors_meet_the_dashboard_and_it_alone(
    built: dict[str, list[Doc]], target: str
) -> None:
    docs, name = built[target], "loopstream-dashboard"
    labels = _one(docs, "Deployment", name)["spec"]["template"]["metadata"]["labels"]
    worker = _one(docs, "StatefulSet")["spec"]["template"]["metadata"]["labels"]
    for selector in (
        _one(docs, "Deployment", name)["spec"]["selector"]["matchLabels"],
        _one(docs, "Service", name)["spec"]["selector"],
        _one(docs, "NetworkPolicy", name)["spec"]["podSelector"]["matchLabels"],
    ):
        assert selector.items() <= labels.items()
        assert not selector.items() <= worker.items()


@pytest.mark.parametrize("target", TARGETS[:2])
def test_the_dashboard_starts_with_what_it_is_given(
    built: dict[str, list[Doc]], target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod = _one(built[target], "Deployment", "loopstream-dashboard")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    for variable in container["env"]:
        monkeypatch.setenv(variable["name"], variable["value"])
    monkeypatch.delenv("LOOPSTREAM_CONFIG")
    monkeypatch.chdir(tmp_path)
    settings = load().settings
    assert container["args"] == ["web"]
    assert settings.web.port == container["ports"][0]["containerPort"]
    assert settings.web.token_file is not None
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert str(settings.web.token_file.parent) in mounts


@pytest.mark.parametrize("target", TARGETS[:2])
def test_the_settings_are_ones_that_exist(
    built: dict[str, list[Doc]], target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = built[target]
    pod = _one(docs, "StatefulSet")["spec"]["template"]["spec"]
    mounted = next(v for v in pod["volumes"] if v["name"] == "settings")["configMap"]["name"]
    file = tmp_path / "loopstream.toml"
    file.write_text(_one(docs, "ConfigMap", mounted)["data"]["loopstream.toml"])
    for variable in pod["containers"][0]["env"]:
        monkeypatch.setenv(variable["name"], variable.get("value", "loopstream-0"))
    monkeypatch.setenv("LOOPSTREAM_CONFIG", str(file))
    settings = load().settings
    assert settings.worker.instance_id == "loopstream-0"
    assert settings.worker.metrics_port == 9464
    assert settings.log.format == "json"
    if target == "overlays/production":
        assert settings.connection.uses_ssl


def test_the_scaler_knows_the_group_the_topic_and_the_partitions(
    built: dict[str, list[Doc]],
) -> None:
    spec = _one(built["overlays/production"], "ScaledObject")["spec"]
    (trigger,) = spec["triggers"]
    assert trigger["metadata"]["topic"] == Topics("loopstream").events
    assert trigger["metadata"]["consumerGroup"] == "loopstream.worker"
    assert spec["maxReplicaCount"] == _partitions(built)
    stateful = _one(built["overlays/production"], "StatefulSet")
    assert spec["scaleTargetRef"]["name"] == stateful["metadata"]["name"]
    assert "replicas" not in stateful["spec"]


def _partitions(built: dict[str, list[Doc]]) -> int:
    events = _one(built["strimzi"], "KafkaTopic", Topics("loopstream").events)
    count: int = events["spec"]["partitions"]
    return count


def test_strimzi_makes_the_same_topics_as_topics_create(built: dict[str, list[Doc]]) -> None:
    topics = {
        doc["metadata"]["name"]: doc["spec"]
        for doc in built["strimzi"]
        if doc["kind"] == "KafkaTopic"
    }
    wanted = plan("loopstream", _partitions(built))
    assert topics.keys() == {topic.name for topic in wanted}
    for topic in wanted:
        spec = topics[topic.name]
        config = {name: str(value) for name, value in spec["config"].items()}
        assert config.pop("min.insync.replicas") == "2"
        assert (spec["partitions"], spec["replicas"]) == (topic.partitions, 3)
        assert config == topic.config, topic.name


def _allowed(built: dict[str, list[Doc]], user: str) -> dict[str, set[str]]:
    acls = _one(built["strimzi"], "KafkaUser", user)["spec"]["authorization"]["acls"]
    return {
        f"{acl['resource']['type']}:{acl['resource']['name']}": set(acl["operations"])
        for acl in acls
    }


def test_nobody_may_do_more_than_its_part(built: dict[str, list[Doc]]) -> None:
    names = Topics("loopstream")
    worker, runner = (_allowed(built, f"loopstream-{who}") for who in ("worker", "runner"))
    assert worker.keys() == {
        *(f"topic:{topic.name}" for topic in plan("loopstream", 1)),
        "group:loopstream.worker",
    }
    assert "Write" not in worker[f"topic:{names.config}"] | worker[f"topic:{names.commands}"]
    assert runner == {
        f"topic:{names.events}": {"Write", "Describe"},
        f"topic:{names.verdicts}": {"Read", "Describe"},
    }
    operator = _allowed(built, "loopstream-operator")
    writable = {name for name, operations in operator.items() if "Write" in operations}
    assert writable == {f"topic:{names.config}", f"topic:{names.commands}"}


def test_users_and_topics_belong_to_the_cluster(built: dict[str, list[Doc]]) -> None:
    for doc in built["strimzi"]:
        assert doc["metadata"]["labels"]["strimzi.io/cluster"] == "kafka"
        assert doc["metadata"]["namespace"] == "kafka"


def test_the_network_lets_brokers_names_and_the_scraper_through(
    built: dict[str, list[Doc]],
) -> None:
    spec = _one(built["overlays/production"], "NetworkPolicy")["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert {port["port"] for rule in spec["egress"] for port in rule["ports"]} == {53, 9092, 9093}
    assert [port["port"] for rule in spec["ingress"] for port in rule["ports"]] == ["metrics"]
