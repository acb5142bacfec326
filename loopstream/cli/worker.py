"""``loopstream worker``: one worker process."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loopstream.cli.options import Bootstrap, ConfigFile, Prefix, SetValues, load_settings


def worker(
    instance_id: Annotated[
        str | None,
        typer.Option("--instance-id", help="Keep the partitions over a restart under this id."),
    ] = None,
    store: Annotated[
        str | None, typer.Option("--store", help="memory, or rocksdict (extra: durable).")
    ] = None,
    datadir: Annotated[
        Path | None, typer.Option("--datadir", help="Folder of the durable store.")
    ] = None,
    metrics_port: Annotated[
        int | None, typer.Option("--metrics-port", help="Serve metrics and health.")
    ] = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    config: ConfigFile = None,
    values: SetValues = None,
) -> None:
    """Run one worker until SIGTERM or Ctrl-C: it judges the events of its partitions.

    Start as many as there are partitions at most; they share the work and take over from each
    other. On a stop a worker writes a checkpoint first.

    ```console
    $ loopstream worker --prefix acme
    $ loopstream worker --set deployment.mode=shadow --set worker.standby_replicas=1
    ```

    Exit code 70: the worker could not go on without risking data; start it again.
    """
    from loopstream.partition import marker_key, row_position
    from loopstream.runtime.app import run_worker
    from loopstream.runtime.product import partition_factory
    from loopstream.runtime.settings import worker_settings

    settings = load_settings(
        bootstrap,
        prefix,
        config,
        values,
        worker__instance_id=instance_id,
        worker__store=store,
        worker__datadir=datadir,
        worker__metrics_port=metrics_port,
    ).settings
    told = worker_settings(settings)
    code = run_worker(told, partition_factory(told), marker_key, row_position)
    if code:
        raise typer.Exit(code)
