from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from promql_parser import Expr, Matcher, MatrixSelector, VectorSelector

from loopstream.events import Action, RejectCode
from loopstream.runtime.metrics import METRICS, PREFIX, Metric

# Prometheus' own, and those of the client library's process collector.
FOREIGN = {"up", "process_cpu_seconds_total", "process_resident_memory_bytes"}
SCRAPED = {"job", "instance"}
VARIABLES = {"$__rate_interval": "1m", "$job": ".*"}


@pytest.fixture(scope="session")
def rules(root: Path) -> list[dict[str, Any]]:
    loaded = yaml.safe_load((root / "deploy/monitoring/alerts.yml").read_text())
    return [rule for group in loaded["groups"] for rule in group["rules"]]


@pytest.fixture(scope="session")
def dashboard(root: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((root / "deploy/monitoring/dashboard.json").read_text())
    return loaded


@pytest.fixture(scope="session")
def expressions(rules: list[dict[str, Any]], dashboard: dict[str, Any]) -> dict[str, Expr]:
    """Each expression by the alert or panel that asks it."""
    texts = {rule["alert"]: rule["expr"] for rule in rules}
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            texts[f"{panel['title']}/{target['refId']}"] = _filled_in(target["expr"])
    return {name: promql_parser.parse(text) for name, text in texts.items()}


def _filled_in(text: str) -> str:
    for variable, value in VARIABLES.items():
        text = text.replace(variable, value)
    return text


def _selectors(expression: Expr) -> Iterator[tuple[str, list[Matcher]]]:
    found: list[VectorSelector] = []

    def visit(node: Expr) -> bool:
        if isinstance(node, VectorSelector):
            found.append(node)
        elif isinstance(node, MatrixSelector):
            found.append(node.vector_selector)
        return True

    promql_parser.walk(expression, visit)
    for selector in found:
        assert selector.name is not None
        yield selector.name, list(selector.matchers.matchers)


def _scraped_names() -> dict[str, Metric]:
    names: dict[str, Metric] = {}
    for metric in METRICS:
        if metric.kind == "histogram":
            names |= {f"{PREFIX}{metric.name}_{end}": metric for end in ("bucket", "sum", "count")}
        else:
            names[metric.full_name] = metric
    return names


def test_every_name_that_is_asked_for_exists(expressions: dict[str, Expr]) -> None:
    names = _scraped_names()
    asked = {name for expr in expressions.values() for name, _ in _selectors(expr)}
    assert len(asked) > 20
    assert asked - names.keys() - FOREIGN == set()


def test_every_label_that_is_asked_for_exists(expressions: dict[str, Expr]) -> None:
    names = _scraped_names()
    for asker, expression in expressions.items():
        for name, matchers in _selectors(expression):
            labels = set(names[name].labels) if name in names else set()
            for matcher in matchers:
                assert matcher.name in labels | SCRAPED, f"{asker}: {name}"


def test_every_value_that_is_asked_for_exists(expressions: dict[str, Expr]) -> None:
    known = {
        "reason": {code.value for code in RejectCode},
        "action": {action.value for action in Action},
        "mode": {"enforce", "shadow"},
    }
    asked = [
        (matcher.name, matcher.value)
        for expression in expressions.values()
        for _, matchers in _selectors(expression)
        for matcher in matchers
        if matcher.name in known
    ]
    assert asked
    assert [(name, value) for name, value in asked if value not in known[name]] == []


def test_labels_in_texts_are_in_the_answers(
    rules: list[dict[str, Any]], dashboard: dict[str, Any]
) -> None:
    for rule in rules:
        used = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["description"]))
        assert used <= _kept(rule["expr"]) | ({"instance"} if "up{" in rule["expr"] else set())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            used = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert used <= _kept(target["expr"]), panel["title"]


def _kept(expression: str) -> set[str]:
    """Labels that ``by`` keeps."""
    kept = re.findall(r"by \(([\w, ]+)\)", expression)
    return {label.strip() for labels in kept for label in labels.split(",")}


def test_an_alert_says_what_is_wrong_and_what_to_do(rules: list[dict[str, Any]]) -> None:
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert rule["alert"].startswith("Loopstream")
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert rule["annotations"].keys() == {"summary", "description"}


def test_the_operators_rules_are_the_same(root: Path) -> None:
    rule = yaml.safe_load((root / "deploy/monitoring/prometheusrule.yaml").read_text())
    assert rule["spec"] == yaml.safe_load((root / "deploy/monitoring/alerts.yml").read_text())


@pytest.mark.skipif(shutil.which("promtool") is None, reason="NOT CHECKED: no promtool here")
def test_promtool_takes_the_rules(root: Path) -> None:
    file = root / "deploy/monitoring/alerts.yml"
    done = subprocess.run(
        ["promtool", "check", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_dashboard_is_laid_out(dashboard: dict[str, Any]) -> None:
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not taken & cells, panel["title"]
        taken |= cells


def test_every_panel_is_explained_and_asks_the_chosen_source(dashboard: dict[str, Any]) -> None:
    for panel in dashboard["panels"]:
        if panel["type"] != "row":
            assert panel["description"].endswith(".")
            assert panel["targets"]
            assert {target["datasource"]["uid"] for target in panel["targets"]} == {"${datasource}"}


def test_grafana_finds_source_and_dashboard(root: Path, compose: dict[str, Any]) -> None:
    folder = root / "deploy/compose/grafana"
    sources = yaml.safe_load((folder / "datasources.yml").read_text())["datasources"]
    assert sources[0]["url"].removeprefix("http://").split(":")[0] in compose["services"]
    providers = yaml.safe_load((folder / "dashboards.yml").read_text())["providers"]
    mounted = [volume.split(":")[1] for volume in compose["services"]["grafana"]["volumes"]]
    assert f"{providers[0]['options']['path']}/loopstream.json" in mounted
