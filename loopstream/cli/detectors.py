"""``loopstream detectors``: what is watched for, with the values in force and their origin."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from loopstream.cli.console import Output, say, show
from loopstream.cli.options import ProfileName, load_settings

if TYPE_CHECKING:
    from loopstream.policy.deployment import Profile
    from loopstream.policy.in_force import Blocks

COLUMNS: Final = ("detector", "about", "mode", "setting", "value", "origin")


def detectors(
    file: Annotated[
        Path | None, typer.Argument(help="JSON or JSON5 file of detector settings.")
    ] = None,
    agent: Annotated[str | None, typer.Option("--agent", help="As they are for an agent.")] = None,
    tool: Annotated[str, typer.Option("--tool", help="As they are for a tool.")] = "",
    profile: Annotated[
        ProfileName | None, typer.Option("--profile", help="Default: the deployment's.")
    ] = None,
    describe: Annotated[
        bool, typer.Option("--describe", help="Say what each reacts to instead.")
    ] = False,
    output: Annotated[Output, typer.Option("--output", "-o", help="Form of the data.")] = (
        Output.TABLE
    ),
) -> None:
    """List the detectors with their modes and settings, each with its value and where it is from.

    Without a file these are the defaults. Detectors of other distributions (entry points of the
    group loopstream.detectors) are listed with those of profile extended. What is in force on a
    cluster is told by config show --agent.

    ```console
    $ loopstream detectors --describe
    $ loopstream detectors agents.json --agent researcher
    $ loopstream detectors agents.json --profile extended --tool bash
    ```
    """
    from loopstream.policy.advice import NoteKind, explain
    from loopstream.policy.in_force import rows

    told = load_settings().settings.deployment
    chosen: Profile = told.profile if profile is None else profile.value
    if describe:
        show(_described(chosen), ("detector", "about", "reacts"), output)
        return
    blocks = _blocks(file, agent)
    for note in explain(blocks.merged, chosen):
        if note.kind is NoteKind.IGNORED:
            say(note.text)
    found = rows(chosen, blocks, tool=tool, deployment=told.mode)
    show((row._asdict() for row in found), COLUMNS, output)


def _described(profile: Profile) -> Iterator[dict[str, Any]]:
    from loopstream.detect.extended.registry import detectors as registered
    from loopstream.detect.profiles import PROFILES

    if profile == "extended":
        for detector in registered():
            words = " ".join((type(detector).__doc__ or "").split())
            yield {"detector": detector.name, "about": detector.about.name.lower(), "reacts": words}
        return
    by_name = {judge.name.value: judge for judge in PROFILES[profile].detectors}
    for name, judge in by_name.items():
        words = " ".join((type(judge).__doc__ or "").partition("Source:")[0].split())
        yield {"detector": name, "about": "call", "reacts": words}


def _blocks(file: Path | None, agent: str | None) -> Blocks:
    from loopstream.config import read_blocks
    from loopstream.policy.in_force import Blocks

    if file is None:
        return Blocks(agent=agent)
    read = read_blocks(file)
    own = next((named.block for named in read.blocks if named.key == agent), None)
    return Blocks(read.global_block, agent, own)
