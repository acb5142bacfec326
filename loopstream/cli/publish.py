"""``loopstream publish``: recorded runs to the events topic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Final

import typer

from loopstream.cli.console import say
from loopstream.cli.options import Bootstrap, ConfigFile, Prefix, SetValues, settings_of
from loopstream.errors import DataError, UsageError

if TYPE_CHECKING:
    from kafka import KafkaProducer

    from loopstream.cli.kafka import Confirmations
    from loopstream.cli.recorded import Publisher, RecordedRun
    from loopstream.config import Settings
    from loopstream.wire.keys import IssuedKey

# Below the record bound, with room for a last event of raw values.
FRAME_BYTES: Final = 256 * 1024
FRAME_EVENTS: Final = 500


class Sample(StrEnum):
    """Recorded runs that come with the package; all of them invented."""

    HEALTHY = "healthy"
    LOOP = "loop"


def publish(
    file: Annotated[
        Path | None, typer.Argument(help="Recorded runs: .jsonl, plain or gzipped.")
    ] = None,
    sample: Annotated[
        list[Sample] | None,
        typer.Option("--sample", help="Recorded runs that come with loopstream, instead of FILE."),
    ] = None,
    run_prefix: Annotated[
        str, typer.Option("--run-prefix", help="Put in front of each run id.")
    ] = "",
    agent: Annotated[
        str | None, typer.Option("--agent", help="Agent of the runs: picks their settings.")
    ] = None,
    raw: Annotated[
        bool,
        typer.Option("--raw", help="Send arguments and results themselves, not fingerprints."),
    ] = False,
    signing_key: Annotated[
        Path | None,
        typer.Option(
            "--signing-key",
            help="What `keys issue loopstream-publish` wrote, where signing.file is not set.",
        ),
    ] = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    config: ConfigFile = None,
    values: SetValues = None,
) -> None:
    """Publish recorded runs to the events topic, as their runners would have.

    Each run is begun, told call by call, and ended. Watch what comes back with verdicts.

    ```console
    $ loopstream publish runs.jsonl.gz --run-prefix monday-
    $ loopstream publish --sample loop --sample healthy
    ```

    Runs published again under the same id go on where they were: give another --run-prefix to
    start anew. Events are signed if there is a key, as those of the runner `loopstream-publish`.
    """
    if (file is None) == (not sample):
        raise UsageError("give either a FILE or --sample.")
    settings = settings_of(bootstrap, prefix, config, values)
    files = [_sample_path(name) for name in sample or ()] if file is None else [file]
    for one in files:
        _open(one).close()
    publisher = _publisher(settings, run_prefix, agent, raw)
    runs = events = 0
    keys = _keys(settings, signing_key)
    for count in _publish(settings, publisher, files, keys):
        runs, events = runs + 1, events + count
    say(f"published {runs} runs, {events} events to {settings.prefix}.events")


def _sample_path(sample: Sample) -> Path:
    from importlib.resources import files

    return Path(str(files("loopstream.samples") / f"{sample.value}.jsonl"))


def _publisher(settings: Settings, run_prefix: str, agent: str | None, raw: bool) -> Publisher:
    import time

    from loopstream.cli.recorded import Publisher
    from loopstream.sdk.prints import Printer

    key = settings.tenant_key
    printer = Printer((settings.deployment.profile,), key.read(), key.id)
    return Publisher(printer, agent, run_prefix, raw, int(time.time() * 1000))


def _keys(settings: Settings, file: Path | None) -> Sequence[IssuedKey]:
    from loopstream.cli.recorded import RUNNER
    from loopstream.sdk.options import issued_keys

    if file is not None:
        return issued_keys(file)
    return [key.issue(RUNNER) for key in settings.signing.read()]


def _publish(
    settings: Settings, publisher: Publisher, files: list[Path], keys: Sequence[IssuedKey]
) -> Iterator[int]:
    """Send all runs of all files; yields each run's number of events when it is handed over.

    Raises:
        DataError: a line is no recorded run.
        LoopstreamError: Kafka is unreachable, a topic is missing, a record was refused.
    """
    from loopstream.cli import kafka
    from loopstream.cli.recorded import unique
    from loopstream.runtime.topics import Topics

    topic = Topics(settings.prefix).events
    kafka.require_topic(settings, topic)
    with kafka.producer(settings, linger_ms=20) as client:
        sent = kafka.Confirmations(client, settings)
        for recorded in unique(_read(files)):
            yield _send(client, topic, publisher, recorded, sent, keys)
        sent.wait()


def _send(
    client: KafkaProducer,
    topic: str,
    publisher: Publisher,
    recorded: RecordedRun,
    sent: Confirmations,
    keys: Sequence[IssuedKey],
) -> int:
    from loopstream.cli.recorded import RUNNER
    from loopstream.wire.codec import CONTENT_TYPE, FRAME_TYPE, pack_frame
    from loopstream.wire.routing import scope_key
    from loopstream.wire.signing import record_headers

    key = (scope_key(publisher.run_id(recorded), None) or "").encode()
    count = 0
    for frame in _frames(publisher.events(recorded)):
        count += len(frame)
        value, headers = pack_frame(frame), [(CONTENT_TYPE, FRAME_TYPE)]
        if keys:
            headers += record_headers(keys[0], RUNNER, value)
        sent.add(client.send(topic, key=key, value=value, headers=headers))
    return count


def _frames(events: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Events in frames that stay below the record bound."""
    frame: list[dict[str, Any]] = []
    size = 0
    for event in events:
        weight = 512 + sum(4 * len(event.get(part) or "") for part in ("args", "result", "error"))
        if frame and (size + weight > FRAME_BYTES or len(frame) == FRAME_EVENTS):
            yield frame
            frame, size = [], 0
        frame.append(event)
        size += weight
    if frame:
        yield frame


def _read(files: list[Path]) -> Iterator[RecordedRun]:
    """The runs of all files, with a progress bar on a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    from loopstream.cli.recorded import read_runs

    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
        for file in files:
            with _open(file) as raw:
                bar = progress.add_task(file.name, total=file.stat().st_size or 1)
                for recorded in read_runs(raw, file.name):
                    progress.update(bar, completed=raw.tell())
                    yield recorded


def _open(file: Path) -> IO[bytes]:
    try:
        return file.open("rb")
    except OSError as error:
        raise DataError(f"can't be read: {error.strerror}.", where=str(file)) from None
