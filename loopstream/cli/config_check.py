"""``loopstream config check``: what a file of detector settings really means."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loopstream.cli.config_notes import notes_of
from loopstream.cli.console import Output, print_line, say, show
from loopstream.cli.options import ProfileName, load_settings
from loopstream.errors import EXIT_SETTINGS

if TYPE_CHECKING:
    from loopstream.config import BlocksFile
    from loopstream.detect.extended.limits import ExtendedLimits
    from loopstream.detect.limits import Limits
    from loopstream.policy.deployment import Profile


def check(
    file: Annotated[Path, typer.Argument(help="JSON or JSON5 file of detector settings.")],
    profile: Annotated[
        ProfileName | None, typer.Option("--profile", help="Default: the deployment's.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 3 if there is anything to remark.")
    ] = False,
    output: Annotated[Output, typer.Option("--output", "-o", help="Form of the data.")] = (
        Output.TABLE
    ),
) -> None:
    """Check a file of detector settings, without Kafka.

    Read are tools.loopDetection and agents.list[].tools.loopDetection, or one block by itself;
    all other keys are left alone. Says what is clamped to what, what can never fire and what is
    ignored, for each agent as it is in force over the global block.

    ```console
    $ loopstream config check agents.json
    $ loopstream config check agents.json --strict
    ```

    Exit codes: 0 if the file can be taken, remarks or not; 3 if it can't (no JSON, a mode or
    detector that there is not, beyond the bounds of a run's record: historySize 10,000, windowSize
    1,000), and with --strict on any remark; 5 if there is no such file. `config push` makes the
    same remarks, and refuses what would not be heeded.
    """
    from loopstream.config import read_blocks

    told = load_settings().settings.deployment.profile if profile is None else profile.value
    checked = list(_checked(read_blocks(file), told))
    if output is not Output.TABLE:
        show(checked, (), output)
    else:
        _print(checked)
    remarks = sum(len(row["notes"]) for row in checked)
    if strict and remarks:
        say(f"{file}: {remarks} remarks, and --strict allows none")
        raise typer.Exit(EXIT_SETTINGS)


def _print(checked: list[dict[str, Any]]) -> None:
    for row in checked:
        print_line(f"{row['key']} ({row['path']}): {row['summary']}")
        for note in row["notes"]:
            print_line(f"  {note['kind'].replace('_', ' ')}: {note['text']}")


def _checked(read: BlocksFile, profile: Profile) -> Iterator[dict[str, Any]]:
    from loopstream.policy.extended_settings import resolve_for, view_in_force

    for named in read.blocks:
        limits = resolve_for(profile, read.in_force(named))
        yield {
            "key": named.key,
            "path": named.path,
            "summary": _summary(limits),
            **view_in_force(limits),
            "digest": limits.digest,
            "notes": [
                {"kind": note.kind.value, "setting": note.path, "text": note.text}
                for note in notes_of(read, named, profile)
            ],
        }


def _summary(limits: Limits) -> str:
    from loopstream.policy.rollout import BY_DETECTOR
    from loopstream.policy.settings import resolved_view

    guard = f"guard {limits.guard_window}" if limits.guard else "guard off"
    if not limits.enabled:
        return f"off, {guard}"
    if limits.extended is not None:
        return _extended_summary(limits.extended, guard)
    detectors = (
        ("genericRepeat", limits.generic_repeat),
        ("knownPollNoProgress", limits.known_poll),
        ("pingPong", limits.ping_pong),
    )
    off = [f"{name} off" for name, on in detectors if not on]
    modes = resolved_view(limits).get(BY_DETECTOR, {})
    held = [f"{name} in mode {mode}" for name, mode in modes.items()]
    thresholds = f"warn {limits.warning}, block {limits.critical}, breaker {limits.breaker}"
    sizes = f"unknown tool {limits.unknown_tool}, history {limits.history_size}"
    return ", ".join(["on", thresholds, sizes, *off, guard, *held])


def _extended_summary(limits: ExtendedLimits, guard: str) -> str:
    from loopstream.policy.extended_settings import extended_view

    whole = f"profile extended, history {limits.history_size}, patience {limits.patience:g}"
    detectors: dict[str, dict[str, Any]] = extended_view(limits)["detectors"]
    told = []
    for name in sorted(limits.detectors):
        values = ", ".join(f"{key} {value}" for key, value in detectors[name].items())
        told.append(f"{name} ({values})")
    tools = [f"tool {tool.pattern} by itself" for tool in limits.tools]
    return ", ".join(["on", whole, f"mode {limits.mode}", guard, *told, *tools])
