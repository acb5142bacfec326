"""``loopstream runs release`` and ``runs abort``: an operator's word, and what came of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final, Self

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
from loopstream.errors import EXIT_VERDICT, UsageError

if TYPE_CHECKING:
    from loopstream.config import Settings
    from loopstream.events import Verdict
    from loopstream.web.commands import Action

Reason = Annotated[str, typer.Option("--reason", help="Why; kept with the verdict.")]
By = Annotated[
    str | None, typer.Option("--by", help="Who; kept with the verdict. Default: your user name.")
]
Wait = Annotated[
    float,
    typer.Option("--wait", min=0, help="Seconds to wait for the verdict; 0: only write it."),
]
_WAIT_S: Final = 15.0
_POLL_MS: Final = 250


def release(
    run: Annotated[str, typer.Argument(help="Run id.")],
    reason: Reason,
    by: By = None,
    wait: Wait = _WAIT_S,
    output: OutputForm = Output.TABLE,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    config: ConfigFile = None,
    values: SetValues = None,
) -> None:
    """Let a run go on: what is refused now is allowed until its result changes.

    An abort is lifted, too. The worker carries it out in the order of the run's own events; the
    verdict carries your name and reason, and is waited for.

    ```console
    $ loopstream runs release monday-17 --reason "the database is back"
    ```

    Exit code 1 if it was written, but no verdict came in time; 2 if no worker knows the run.
    """
    settings = settings_of(bootstrap, prefix, config, values)
    _order(settings, "release", run, None, reason, by, wait, output)


def abort(
    reason: Reason,
    run: Annotated[str | None, typer.Argument(help="Run id.")] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", help="All runs of this agent that have begun.")
    ] = None,
    by: By = None,
    wait: Wait = _WAIT_S,
    output: OutputForm = Output.TABLE,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    config: ConfigFile = None,
    values: SetValues = None,
) -> None:
    """End a run, or all runs of an agent: their runners raise RunAborted at the next call.

    Runs of an agent take it up with their next event, each by itself: what comes of it within
    --wait is shown. A run that begins later goes on.

    ```console
    $ loopstream runs abort monday-17 --reason "wrong repository"
    $ loopstream runs abort --agent researcher --reason "bad release" --by ada
    ```

    Exit code 1 if it was written, but no verdict came in time; 2 if no worker knows the run.
    """
    if (run is None) == (agent is None):
        raise UsageError("give either a RUN or --agent.")
    settings = settings_of(bootstrap, prefix, config, values)
    _order(settings, "abort", run, agent, reason, by, wait, output)


def _order(
    settings: Settings,
    action: Action,
    run: str | None,
    agent: str | None,
    reason: str,
    by: str | None,
    wait: float,
    output: Output,
) -> None:
    from loopstream.web.commands import command_of, send

    reason, name = _words(reason, by)
    scope = None if run is None else _known(settings, run)
    with _Ears(settings, scope) as ears:
        offset = send(settings, scope or agent or "", command_of(action, reason, name, agent))
        what = f"{action} of {run if agent is None else f'all runs of {agent}'}"
        say(f"{what}: written to {settings.prefix}.commands@{offset} in the name of {name}")
        if wait == 0:
            return
        heard = 0
        for verdict in ears.told(offset, wait, one=scope is not None):
            heard += 1
            _tell(verdict, output)
    if not heard:
        say(f"no verdict within {wait:g} s: {_pending(action, agent)}")
        raise typer.Exit(EXIT_VERDICT)
    if agent is not None:
        say(f"{heard} runs so far; any other takes it up with its next event")


def _pending(action: Action, agent: str | None) -> str:
    """What an order waits for, as far as can be told from here."""
    if agent is not None:
        return f"each run of {agent} takes it up with its next event, and none has sent one yet."
    nothing = "either nothing was refused any more" if action == "release" else "it was aborted"
    return (
        f"{nothing}{' already' if action == 'abort' else ''}, or no worker serves the run's "
        "partition now: it is carried out as soon as one does. `loopstream doctor` tells."
    )


def _words(reason: str, by: str | None) -> tuple[str, str]:
    from getpass import getuser

    from loopstream.events.text import trim
    from loopstream.web.commands import MAX_NAME, MAX_REASON

    reason, name = trim(reason), trim(getuser() if by is None else by)
    if not 0 < len(reason) <= MAX_REASON or not 0 < len(name) <= MAX_NAME:
        raise UsageError(
            f"a reason of at most {MAX_REASON} and a name of at most {MAX_NAME} characters are "
            "needed: both are kept with the verdict."
        )
    return reason, name


def _known(settings: Settings, run: str) -> str:
    """The scope key of a run that workers know.

    Raises:
        UsageError: none does.
    """
    from loopstream.cli.runs_table import read_summaries, scope_of

    scope = scope_of(run)
    if scope not in read_summaries(settings, scope):
        hint = "`loopstream runs list` shows all; a new run is known after a checkpoint."
        raise UsageError("no worker knows this run.", where=run, hint=hint)
    return scope


def _tell(verdict: Verdict, output: Output) -> None:
    row = verdict.model_dump(mode="json", by_alias=True, exclude_none=True)
    if output is not Output.TABLE:
        show([row], (), Output.NDJSON)
        return
    from loopstream.cli.explain import marked
    from loopstream.cli.runs_list import run_name

    target = "" if verdict.detector == "operator" else f" of {verdict.detector}"
    print_line(f"{run_name(row)}: {row['action']}{marked(row)}{target}. {row['reason']}")


class _Ears:
    """Hears the verdicts that come after it was opened."""

    def __init__(self, settings: Settings, scope: str | None) -> None:
        self._settings = settings
        self._scope = scope

    def __enter__(self) -> Self:
        from contextlib import ExitStack

        from loopstream.cli import kafka
        from loopstream.runtime.topics import Topics
        from loopstream.wire.routing import partition_of

        self._stack = ExitStack()
        client = self._client = self._stack.enter_context(kafka.consumer(self._settings))
        parts = kafka.partitions_of(client, Topics(self._settings.prefix).verdicts)
        if self._scope is not None:
            parts = [parts[partition_of(self._scope, len(parts))]]
        client.assign(parts)
        ends = client.end_offsets(parts, timeout_ms=int(self._settings.timeout_s * 1000))
        for part, end in ends.items():
            client.seek(part, end)
        return self

    def __exit__(self, *raised: object) -> None:
        self._stack.close()

    def told(self, offset: int, wait: float, *, one: bool) -> Iterator[Verdict]:
        """Verdicts that carry the command at ``offset`` out; with ``one`` those of one event."""
        deadline = time.monotonic() + wait
        heard = False
        while not (one and heard) and time.monotonic() < deadline:
            for records in self._client.poll(timeout_ms=_POLL_MS).values():
                for record in records:
                    verdict = _decoded(record)
                    if verdict is not None and verdict.evidence.command == offset:
                        heard = True
                        yield verdict


def _decoded(record: Any) -> Verdict | None:
    from loopstream.errors import DataError
    from loopstream.wire.codec import CONTENT_TYPE
    from loopstream.wire.verdicts import decode_verdict

    try:
        return decode_verdict(record.value, dict(record.headers).get(CONTENT_TYPE))
    except DataError:
        return None
