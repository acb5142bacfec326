"""``loopstream explain``: one run, call by call."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from loopstream.cli.console import Output, print_line, show
from loopstream.cli.forensics import (
    Events,
    Overlay,
    SettingsFile,
    Until,
    forensic_settings,
    make_job,
    moment,
    say_notes,
    scratch,
    source_of,
    what_if,
)
from loopstream.cli.options import Bootstrap, ConfigFile, OutputForm, Prefix
from loopstream.errors import UsageError

if TYPE_CHECKING:
    from loopstream.replay.explain import Told
    from loopstream.replay.story import Entry

_PREVIEW: Final = 60
_FACTS: Final = {
    **{name: name for name in ("agent", "session", "runner", "status", "calls", "refused")},
    "warnings": "warnings",
    "blocks": "blocked calls",
    "shadow": "shadow verdicts",
}


def explain(
    run: Annotated[str, typer.Argument(help="Run id.")],
    file: Events = None,
    at: Annotated[
        int | None, typer.Option("--at", min=0, help="Up to the event with this seq.")
    ] = None,
    calls: Annotated[
        bool, typer.Option("--spoken", help="Only events at which something was said or done.")
    ] = False,
    until: Until = None,
    settings_file: SettingsFile = None,
    overlay: Overlay = None,
    output: OutputForm = Output.TABLE,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    config: ConfigFile = None,
) -> None:
    """Tell a run call by call: why it was warned, blocked or stopped, and what it did then.

    Calls with the same tool and arguments share a letter, their results are numbered: A1, A1, A2.
    Each detector's count is shown against its threshold, and why the winning one won. Settings are
    named with the record that brought them.

    ```console
    $ loopstream explain monday-17
    $ loopstream explain monday-17 --at 41
    ```
    """
    from loopstream.cli.runs_table import scope_of
    from loopstream.replay.explain import Told
    from loopstream.replay.explain import explain as tell

    settings = forensic_settings(bootstrap, prefix, config)
    job = make_job(
        settings,
        source_of(settings, file),
        until=moment(until),
        what=what_if(settings_file, overlay),
    )
    scope = scope_of(run)
    told = Told(scope)
    with scratch() as folder:
        entries = _up_to(tell(job, scope, folder, told), at, run)
        if calls:
            entries = (entry for entry in entries if _spoken(entry))
        if output is Output.TABLE:
            for entry in entries:
                for line in lines_of(entry):
                    print_line(line)
            for line in _closing(told):
                print_line(line)
        else:
            show(entries, (), output)
    say_notes(told.notes)


def _up_to(entries: Iterator[Entry], at: int | None, run: str) -> Iterator[Entry]:
    """Entries up to a seq.

    Raises:
        UsageError: the run never came that far.
    """
    last = None
    for entry in takewhile(lambda e: at is None or e["seq"] is None or e["seq"] <= at, entries):
        last = entry["seq"] if entry["seq"] is not None else last
        yield entry
    if at is not None and last != at:
        raise UsageError(f"there is no event {at}; the last one before it is {last}.", where=run)


def _spoken(entry: Entry) -> bool:
    return bool(entry["verdicts"] or entry.get("after") or entry.get("settings"))


def lines_of(entry: Entry) -> Iterator[str]:
    """An entry as lines of text."""
    if (found := entry.get("settings")) is not None:
        yield _settings(found)
    yield _head(entry)
    saw = [_saw(sight) for sight in entry.get("saw", ()) if sight["counts"]]
    if entry.get("judged") is not None or entry["verdicts"]:
        if saw:
            yield f"        saw: {'; '.join(saw)}"
        if "why" in entry:
            yield f"        why: {entry['why']}"
    if entry.get("judged") == "warning" and not entry.get("announced"):
        yield "        warning not announced: said before, and not yet ten more"
    if "muted" in entry:
        yield f"        muted: {entry['muted']}"
    for verdict in entry["verdicts"]:
        yield (
            f"     => {verdict['action'].upper()}{marked(verdict)} {verdict['detector']} "
            f"{verdict['count']}/{verdict['threshold']}: {verdict['reason']}"
        )
    if "after" in entry:
        yield f"     <- {entry['after']}"


def marked(verdict: Mapping[str, Any]) -> str:
    """What a verdict's mode has to do with it, for people."""
    if verdict.get("mode") == "shadow":
        return " (shadow)"
    held_back = verdict.get("instead_of")
    return "" if held_back is None else f" (mode warn: no {held_back})"


def _head(entry: Entry) -> str:
    at = datetime.fromtimestamp(entry["append_time"] / 1000, tz=UTC).strftime("%H:%M:%S.%f")[:-3]
    seq = "" if entry["seq"] is None else entry["seq"]
    begin = f"#{entry['n']:<4} {seq!s:>4}  {at}  "
    if entry["kind"] == "tool_call":
        how = "" if entry["disposition"] == "executed" else f" [{entry['disposition']}]"
        return (
            f"{begin}{entry['group']:<3} {entry['tool']}{how} {_short(entry['preview'])}".rstrip()
        )
    if entry["kind"] == "tool_outcome":
        result = entry["result"] or "(nothing recorded)"
        failed = " failed" if entry["failed"] else ""
        ran = "" if entry["executed"] else " [not executed]"
        return (
            f"{begin}{entry['group']:<3} -> {result}{failed}{ran}, "
            f"streak {entry['streak']} of {entry['records']} {_short(entry['preview'])}"
        ).rstrip()
    return f"{begin}{entry['kind']} {entry.get('detail', '')}".rstrip()


def _short(text: str | None) -> str:
    if text is None:
        return ""
    return text if len(text) <= _PREVIEW else text[:_PREVIEW] + "…"


def _saw(sight: dict[str, Any]) -> str:
    counts = ", ".join(f"{c['count']}/{c['threshold']} {c['level']}" for c in sight["counts"])
    muted = " (muted)" if sight["muted"] else ""
    muted += "" if sight["mode"] == "enforce" else f" (mode {sight['mode']})"
    speaks = f" speaks: {sight['speaks']}" if sight["speaks"] else " silent"
    keyed = f" by {sight['keyed_on']}" if "keyed_on" in sight else ""
    levels = "".join(f", {name} {value}" for name, value in sight.get("levels", {}).items())
    gone = f", {sight['escalation']}" if "escalation" in sight else ""
    return f"{sight['detector']}{keyed} {counts},{speaks}{muted}{levels}{gone}"


def _settings(found: dict[str, Any]) -> str:
    modes = f", modes {json.dumps(found['modes'])}" if "modes" in found else ""
    origins = "; ".join(f"{key}: {text}" for key, text in found["from"].items())
    return (
        f"-- settings {found['digest']} from {origins}: {json.dumps(found['resolved'])}, "
        f"guard {json.dumps(found['guard'])}{modes}"
    )


def _closing(told: Told) -> Iterator[str]:
    found = told.identity
    if not found:
        return
    facts = [f"{label} {found[name]}" for name, label in _FACTS.items() if name in found]
    if found.get("mode") == "shadow":
        facts.append("all of it in shadow")
    facts += [f"{found[name]} events {name}" for name in ("gaps", "lost") if found.get(name)]
    yield f"{told.where}: {', '.join(facts)}"
    if told.partial:
        yield "partial: the run had begun before the log does; its counts may be too low"
