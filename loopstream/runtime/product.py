"""The fold that the worker runs: `loopstream.partition.Partition`, with what the settings add."""

from __future__ import annotations

from loopstream.partition import ControlSources, Partition
from loopstream.policy.deployment import Deployment
from loopstream.runtime.fold import Fold, FoldFactory, Rows
from loopstream.runtime.settings import WorkerSettings


def partition_factory(settings: WorkerSettings) -> FoldFactory:
    """Makes the product's fold of a partition."""

    def make(
        deployment: Deployment,
        number: int,
        partitions: int,
        rows: Rows,
        sources: ControlSources,
        state: bytes | None,
    ) -> Fold:
        return Partition(
            deployment,
            number,
            partitions,
            rows,
            sources,
            state=state,
            key=settings.tenant_key,
            samples=settings.samples,
            verifier=settings.verifier,
        )

    return make
