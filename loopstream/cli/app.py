"""All verbs, grouped by task. Each verb has a file; what it needs it imports when it runs."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from loopstream import __version__
from loopstream.build import engine_build
from loopstream.cli import (
    acls,
    broker,
    config_check,
    config_push,
    config_show,
    conformance,
    describe,
    detectors,
    diff,
    doctor,
    explain,
    export,
    keys,
    label,
    publish,
    replay,
    report,
    runs_list,
    runs_order,
    runs_show,
    scenarios,
    schemas,
    sql,
    tail_events,
    topics_create,
    topics_show,
    tune,
    up,
    verdicts,
    web,
    worker,
)
from loopstream.cli.console import DEBUG
from loopstream.cli.pipes import piped

RUN: Final = "Run it"
SETTINGS: Final = "Settings"
WATCH: Final = "Runs and verdicts"
FORENSICS: Final = "Forensics"
CHECK: Final = "Check"

app = typer.Typer(
    name="loopstream",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"loopstream {__version__} (engine: {engine_build()})")
        raise typer.Exit


@app.callback()
def root(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks and the Kafka client's own log.")
    ] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Finds tool-call loops in fleets of AI agents and stops them.

    Brokers and topic prefix come from --bootstrap and --prefix, LOOPSTREAM_BOOTSTRAP and
    LOOPSTREAM_PREFIX, or loopstream.toml.

    Exit codes: 0 clean, 1 a verdict at or above --fail-on or a mismatch, 2 usage, 3 settings,
    4 Kafka, 5 undecodable data, 70 the worker gave up and wants to be restarted, 130 Ctrl-C.
    """
    del version
    DEBUG.set(debug)


def _group(name: str, about: str, panel: str) -> typer.Typer:
    group = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")
    app.add_typer(group, name=name, help=about, rich_help_panel=panel)
    return group


app.command("up", rich_help_panel=RUN)(up.up)
app.command("worker", rich_help_panel=RUN)(worker.worker)
app.command("web", rich_help_panel=RUN)(web.web)
app.command("broker", rich_help_panel=RUN)(broker.broker)
_topics = _group("topics", "Create and show the topics of a prefix.", RUN)
_topics.command("create")(topics_create.create)
_topics.command("show")(topics_show.show)

_config = _group("config", "Check and push detector settings; show process settings.", SETTINGS)
_config.command("check")(config_check.check)
_config.command("push")(config_push.push)
_config.command("show")(config_show.show)

_keys = _group("keys", "Make the keys of signed records, and issue them to runners.", SETTINGS)
_keys.command("new")(keys.new)
_keys.command("issue")(keys.issue)

app.command("publish", rich_help_panel=WATCH)(publish.publish)
app.command("verdicts", rich_help_panel=WATCH)(verdicts.verdicts)
_runs = _group("runs", "List runs, show what became of one; release and abort.", WATCH)
_runs.command("list")(runs_list.list_runs)
_runs.command("show")(runs_show.show)
_runs.command("release")(runs_order.release)
_runs.command("abort")(runs_order.abort)

app.command("replay", rich_help_panel=FORENSICS)(piped(replay.replay))
app.command("diff", rich_help_panel=FORENSICS)(piped(diff.diff))
app.command("explain", rich_help_panel=FORENSICS)(piped(explain.explain))
app.command("report", rich_help_panel=FORENSICS)(report.report)
app.command("export", rich_help_panel=FORENSICS)(export.export)
app.command("sql", rich_help_panel=FORENSICS)(piped(sql.sql))
app.command("label", rich_help_panel=FORENSICS)(label.label)
app.command("tune", rich_help_panel=FORENSICS)(piped(tune.tune))
app.command("tail", rich_help_panel=FORENSICS)(piped(tail_events.tail))

app.command("acls", rich_help_panel=CHECK)(acls.acls)
app.command("doctor", rich_help_panel=CHECK)(doctor.doctor)
app.command("describe", rich_help_panel=CHECK)(describe.describe)
app.command("conformance", rich_help_panel=CHECK)(conformance.conformance)
app.command("scenarios", rich_help_panel=CHECK)(scenarios.scenarios)
app.command("detectors", rich_help_panel=SETTINGS)(detectors.detectors)
app.command("schemas", rich_help_panel=CHECK)(schemas.schemas)
