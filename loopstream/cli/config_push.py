"""``loopstream config push``: detector settings to the config topic."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loopstream.cli.console import Output, print_line, say, show
from loopstream.cli.options import (
    Bootstrap,
    ConfigFile,
    OutputForm,
    Prefix,
    SetValues,
    settings_of,
)
from loopstream.errors import SettingsError

if TYPE_CHECKING:
    from loopstream.config import BlocksFile, Settings


def push(
    file: Annotated[Path, typer.Argument(help="JSON or JSON5 file of detector settings.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would change, and change nothing.")
    ] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Take away the blocks that the file has not.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Push settings too that would not be heeded.")
    ] = False,
    output: OutputForm = Output.TABLE,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    config: ConfigFile = None,
    values: SetValues = None,
) -> None:
    """Push the detector settings of a file to the config topic; only what changed is sent.

    Workers take them up in the midst of runs, at the same record of each partition for everyone
    who reads it. Blocks of agents that the file does not name stay, unless --prune is given.

    ```console
    $ loopstream config push agents.json --dry-run
    $ loopstream config push agents.json
    ```

    What `config check` remarks is told on stderr first. A misspelt setting, or a value that is not
    used (`"enabled": "yes"`), is refused with exit code 3 unless --force is given.
    """
    from loopstream.cli.config_notes import warn
    from loopstream.config import read_blocks

    read = read_blocks(file)
    settings = settings_of(bootstrap, prefix, config, values)
    warn(read, settings.deployment.profile, force=force)
    changes = push_blocks(settings, read, prune=prune, dry_run=dry_run)
    if output is not Output.TABLE:
        show((vars(change) | {"dry_run": dry_run} for change in changes), (), output)
        return
    for change in changes:
        print_line(f"{change.what} {change.key}: {change.detail}")
    state = "would change" if dry_run else "changed"
    say(f"{len(changes)} of {len(read.blocks)} blocks {state} in {settings.prefix}.config")


@dataclass
class Change:
    """One record for the config topic."""

    what: str
    """``add``, ``change`` or ``remove``."""
    key: str
    detail: str
    offset: int | None = None
    """Where it went; None: not sent."""


def push_blocks(
    settings: Settings, read: BlocksFile, *, prune: bool = False, dry_run: bool = False
) -> list[Change]:
    """Bring the config topic to what a file says.

    Returns:
        What changed, confirmed by the broker (or would change, in a dry run).

    Raises:
        LoopstreamError: Kafka is unreachable, the topic is missing, or we may not write there.
    """
    from loopstream.cli import kafka
    from loopstream.runtime.topics import Topics

    topic = Topics(settings.prefix).config
    before = blocks_in_force(settings, topic)
    planned = list(_changes(read, before, prune))
    _require_room(before, planned)
    if dry_run or not planned:
        return [change for change, _ in planned]
    with kafka.producer(settings) as client:
        # One by one: all have one partition, and the order of the file is the order of offsets.
        for change, value in planned:
            future = client.send(topic, key=change.key.encode(), value=value)
            change.offset = future.get(timeout=settings.timeout_s).offset
    return [change for change, _ in planned]


def _require_room(before: dict[str, Any], planned: list[tuple[Change, bytes | None]]) -> None:
    from loopstream.partition.settings import MAX_SETTINGS_BYTES, bytes_of

    after = {key: _text(block) for key, block in before.items()}
    for change, value in planned:
        after.pop(change.key, None)
        if value is not None:
            after[change.key] = value.decode()
    total = bytes_of(after)
    if total > MAX_SETTINGS_BYTES:
        raise SettingsError(
            f"the prefix would have {total} bytes of settings; workers take {MAX_SETTINGS_BYTES}.",
            hint="Say what most agents share under tools.loopDetection; by agent only the rest.",
        )


def blocks_in_force(settings: Settings, topic: str) -> dict[str, Any]:
    """Blocks by key, as the topic has them now."""
    from loopstream.cli import kafka
    from loopstream.cli.tail import Tail

    blocks: dict[str, Any] = {}
    with kafka.consumer(settings) as client:
        partitions = kafka.partitions_of(client, topic)
        for record in Tail(client, partitions, timeout_s=settings.timeout_s).records():
            key = (record.key or b"").decode("utf-8", "replace")
            if record.value is None:
                blocks.pop(key, None)
            else:
                blocks[key] = _parsed(record.value)
    return blocks


def _parsed(value: bytes) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None  # nobody's block: any block of ours is a change


def _changes(
    read: BlocksFile, before: dict[str, Any], prune: bool
) -> Iterator[tuple[Change, bytes | None]]:
    for named in read.blocks:
        if named.key not in before:
            yield Change("add", named.key, _text(named.block)), named.value
        elif before[named.key] != named.block:
            old, new = before[named.key], named.block
            yield Change("change", named.key, f"{_text(old)} to {_text(new)}"), named.value
    if prune:
        for key in before.keys() - {named.key for named in read.blocks}:
            yield Change("remove", key, _text(before[key])), None


def _text(block: object) -> str:
    return json.dumps(block, ensure_ascii=False)
