"""``loopstream up``: everything in one command."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from loopstream.cli.console import print_line, say
from loopstream.cli.options import Bootstrap, ConfigFile, Prefix, SetValues, load_settings

if TYPE_CHECKING:
    from loopstream.cli.workers import Workers
    from loopstream.config import BlocksFile, Settings
    from loopstream.policy.deployment import Profile
    from loopstream.replay.audit import Audit

_ASK_S: Final = 10.0
_ASK_TIMES: Final = 9
# How long the worker's last verdicts may take.
_AUDIT_S: Final = 20.0


def up(
    demo: Annotated[
        bool, typer.Option("--demo", help="Play a fleet of agents, some of which loop, and end.")
    ] = False,
    detectors: Annotated[
        Path | None,
        typer.Option("--detectors", help="Detector settings to push first (JSON or JSON5)."),
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, max=16, help="Processes.")] = 1,
    web: Annotated[bool, typer.Option("--web/--no-web", help="Serve the dashboard too.")] = True,
    stay: Annotated[
        bool, typer.Option("--stay", help="With --demo: go on after it, until Ctrl-C.")
    ] = False,
    data_dir: Annotated[
        Path | None,
        typer.Option("--data-dir", help="Keeps the embedded broker's topics between runs."),
    ] = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    config: ConfigFile = None,
    values: SetValues = None,
) -> None:
    """Start broker, topics, workers and dashboard, without Docker; with --demo also a fleet.

    With --bootstrap, LOOPSTREAM_BOOTSTRAP or a loopstream.toml that names brokers, no broker is
    started and those are used. Detection is off until settings switch it on: --detectors FILE, or
    config push later.

    ```console
    $ loopstream up --detectors agents.json --data-dir ~/.loopstream/kafka
    $ loopstream up --demo
    $ loopstream up --demo --stay
    ```

    The demo touches no deployment: it disregards the environment and loopstream.toml and starts a
    broker of its own. It plays elsewhere only if the command line says so with --bootstrap, and
    then under a prefix of its own, demo-<id>, whose topics stay; likewise with --data-dir.

    The demo ends by itself after about 30 s, with the audit: what was recorded is replayed, and
    must come out the same, byte for byte. Exit code 0: it did, every looping agent was stopped and
    no healthy one was; else 1.
    """
    from loopstream.cli.dashboard import dashboard
    from loopstream.cli.demo import demo_settings, names_brokers, told_only_here
    from loopstream.cli.workers import Workers

    with ExitStack() as stack:
        if demo and not names_brokers(bootstrap, values):
            stack.enter_context(told_only_here())
        loaded = load_settings(bootstrap, prefix, config, values)
        wanted = demo_settings(loaded, data_dir) if demo else loaded.settings
        pushed = _detectors(detectors, wanted.deployment.profile, demo=demo)
        given = names_brokers(bootstrap, values) if demo else "bootstrap" in loaded.origins
        settings = stack.enter_context(_cluster(wanted, given, data_dir, demo))
        _prepare(settings, pushed, exact="partitions" in loaded.origins)
        arguments = _arguments(settings, config, values)
        running = Workers(workers, arguments)
        stack.enter_context(running)
        if web:
            stack.enter_context(dashboard(settings, arguments))
        _await(settings, running)
        code = _demo(settings) if demo else 0
        if stay or not demo:
            _serve(settings, running)
    if code:
        raise typer.Exit(code)


@contextmanager
def _cluster(
    settings: Settings, given: bool, data_dir: Path | None, demo: bool
) -> Iterator[Settings]:
    """The settings with a cluster that is there: the one they name, or an embedded one."""
    if given:
        yield settings
        if demo:
            say(f"the demo's topics stay: {settings.prefix}.*")
        return
    from loopstream.broker import EmbeddedKafka

    say("starting Kafka (the first time its jars are fetched)")
    with EmbeddedKafka(data_dir) as broker:
        say(f"Kafka serves at {broker.bootstrap}")
        if data_dir is None and not demo:
            say("its topics go with it; --data-dir keeps them")
        yield settings.model_copy(update={"bootstrap": broker.bootstrap})


def _detectors(file: Path | None, profile: Profile, *, demo: bool) -> BlocksFile | None:
    """What is to be pushed, read and remarked upon before anything is started."""
    from loopstream.cli.config_notes import as_file, warn
    from loopstream.config import GLOBAL_KEY, read_blocks

    if file is None and demo:
        from loopstream.demo.stage import DEMO_SETTINGS

        return as_file({GLOBAL_KEY: DEMO_SETTINGS}, "demo")
    if file is None:
        return None
    read = read_blocks(file)
    warn(read, profile)
    return read


def _prepare(settings: Settings, detectors: BlocksFile | None, *, exact: bool) -> None:
    """Topics, then detector settings: they must be there before a partition's first event."""
    from loopstream.cli.config_notes import switched_on
    from loopstream.cli.config_push import blocks_in_force, push_blocks
    from loopstream.runtime.admin import ensure_topics
    from loopstream.runtime.topics import Topics

    ensure_topics(
        settings.connection,
        settings.prefix,
        settings.partitions,
        settings.replication_factor,
        timeout_s=settings.timeout_s,
        exact=exact,
    )
    if detectors is not None:
        for change in push_blocks(settings, detectors):
            say(f"settings: {change.what} {change.key}: {change.detail}")
    if not switched_on(blocks_in_force(settings, Topics(settings.prefix).config)):
        where = shlex.join(["--bootstrap", settings.bootstrap, "--prefix", settings.prefix])
        say(f"detection is off for everybody; switch it on: loopstream config push FILE {where}")
        say('  FILE holds at least {"enabled": true}; `up --detectors FILE` pushes it at the start')


def _arguments(settings: Settings, config: Path | None, values: list[str] | None) -> list[str]:
    """Of the verbs that run as processes of their own."""
    arguments = ["--bootstrap", settings.bootstrap, "--prefix", settings.prefix]
    if config is not None:
        arguments += ["--config", str(config)]
    for value in values or ():
        arguments += ["--set", value]
    return arguments


def _await(settings: Settings, running: Workers) -> None:
    from loopstream.demo.stage import NoAnswerError, answers

    say("waiting for the worker")
    keys = settings.signing.read()
    for _ in range(_ASK_TIMES):
        if answers(settings.connection, settings.prefix, _ASK_S, keys):
            return
        running.look_after()  # if it ended, that is the better message
    raise NoAnswerError(_ASK_TIMES * _ASK_S)


def _demo(settings: Settings) -> int:
    from rich.console import Console

    from loopstream.demo.stage import perform

    # Off a terminal a table is as wide as its content: nothing is cut for a reader that scrolls.
    console = Console(width=None if sys.stdout.isatty() else 10_000)
    outcome = perform(settings.connection, settings.prefix, console, settings.signing.read())
    audited = _audit(settings)
    print_line(audited.closing_line())
    print_line(outcome.closing_line())
    return 0 if outcome.success and audited.success else 1


def _audit(settings: Settings) -> Audit:
    """Replay what the demo recorded, against the verdicts that its worker published."""
    from loopstream.cli.forensics import make_job, scratch, source_of, verdict_topic
    from loopstream.replay.audit import audit

    job = make_job(settings, source_of(settings, None))
    with scratch() as folder:
        return audit(job, verdict_topic(settings), folder, patience_s=_AUDIT_S)


def _serve(settings: Settings, running: Workers) -> None:
    """Until Ctrl-C or SIGTERM."""
    import signal
    import threading

    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    print_line(settings.bootstrap)
    say(f"ready: prefix {settings.prefix}; stop with Ctrl-C")
    while not stop.wait(1.0):
        running.look_after()
