from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from loopstream.sdk.counters import NAMES
from loopstream.sdk.metrics import LEVELS, RunnerCollector


@dataclass
class Host:
    healthy: bool = True
    counters: dict[str, int] = field(
        default_factory=lambda: {name: at for at, name in enumerate((*NAMES, *LEVELS))}
    )


def test_every_counter_and_level_is_scraped() -> None:
    host, registry = Host(), CollectorRegistry()
    registry.register(RunnerCollector(host))
    text = generate_latest(registry).decode()
    seen = {
        sample.name: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert seen == {
        **{f"loopstream_sdk_{name}_total": host.counters[name] for name in NAMES},
        **{f"loopstream_sdk_{name}": host.counters[name] for name in LEVELS},
        "loopstream_sdk_healthy": 1.0,
    }


def test_the_sdk_alone_does_not_load_it() -> None:
    code = "import loopstream.sdk, sys; sys.exit('prometheus_client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
