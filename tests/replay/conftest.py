from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, cli, on_kafka
from tests.replay.cluster import Cluster

__all__ = ["cli", "on_kafka"]


@pytest.fixture
def cluster(bootstrap: str, prefix: str, tmp_path: Path, on_kafka: Cli) -> Iterator[Cluster]:
    """Topics of a prefix with three partitions, and worker processes on demand."""
    assert on_kafka("topics", "create", "--partitions", 3).code == 0
    made = Cluster(bootstrap, prefix, tmp_path, partitions=3)
    yield made
    made.close()
