"""``loopstream detectors``: what is watched for, with the values in force and their origin."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from loopstream.cli.console import Output, show

if TYPE_CHECKING:
    from loopstream.config import BlocksFile

COLUMNS: Final = ("detector", "about", "mode", "setting", "value", "origin")
_DEFAULT: Final = "default"


def detectors(
    file: Annotated[
        Path | None, typer.Argument(help="JSON or JSON5 file of detector settings.")
    ] = None,
    agent: Annotated[str | None, typer.Option("--agent", help="As they are for an agent.")] = None,
    tool: Annotated[str, typer.Option("--tool", help="As they are for a tool.")] = "",
    describe: Annotated[
        bool, typer.Option("--describe", help="Say what each reacts to instead.")
    ] = False,
    output: Annotated[Output, typer.Option("--output", "-o", help="Form of the data.")] = (
        Output.TABLE
    ),
) -> None:
    """List the detectors of profile extended, each setting with its value and where it is from.

    Without a file these are the defaults. Detectors of other distributions (entry points of the
    group loopstream.detectors) are listed too.

    ```console
    $ loopstream detectors --describe
    $ loopstream detectors agents.json --agent researcher --tool bash
    ```
    """
    if describe:
        show(_described(), ("detector", "about", "reacts"), output)
        return
    show(_rows(file, agent, tool), COLUMNS, output)


def _described() -> Iterator[dict[str, Any]]:
    from loopstream.detect.extended.registry import detectors as registered

    for detector in registered():
        words = " ".join((type(detector).__doc__ or "").split())
        yield {"detector": detector.name, "about": detector.about.name.lower(), "reacts": words}


def _rows(file: Path | None, agent: str | None, tool: str) -> Iterator[dict[str, Any]]:
    from loopstream.config import read_blocks
    from loopstream.detect.extended.base import LEVELS, names_of
    from loopstream.detect.extended.limits import ExtendedLimits
    from loopstream.detect.extended.registry import detectors as registered
    from loopstream.policy.extended_part import MODE, camel
    from loopstream.policy.extended_settings import resolve_extended
    from loopstream.policy.settings import EXTENDED

    read = None if file is None else read_blocks(file)
    merged, layers = _layers(read, agent)
    limits = resolve_extended(merged).extended or ExtendedLimits()
    for detector in registered():
        armed = limits.arm(detector, tool)
        base = {
            "detector": detector.name,
            "about": detector.about.name.lower(),
            "mode": armed.mode,
        }
        yield {
            **base,
            "setting": MODE,
            "value": armed.mode,
            "origin": _origin(layers, detector.name, MODE, tool),
        }
        for name in names_of(type(armed.params)):
            key = camel(name)
            origin = _origin(layers, detector.name, key, tool)
            if name in LEVELS and (patience := limits.patience_for(tool)) != 1:
                origin += f", times patience {patience:g}"
            yield {
                **base,
                "setting": f"{EXTENDED}.detectors.{detector.name}.{key}",
                "value": getattr(armed.params, name),
                "origin": origin,
            }


def _layers(
    read: BlocksFile | None, agent: str | None
) -> tuple[dict[str, Any] | None, list[tuple[str, Any]]]:
    """The merged block, and each ``extended`` part by its origin, the weakest first."""
    from loopstream.policy.settings import EXTENDED, merge

    if read is None:
        return None, []
    own = next((named for named in read.blocks if named.key == agent), None)
    parts = [("everyone", read.global_block)]
    if own is not None:
        parts.append((f"agent {own.key}", own.block))
    layers = [(name, (block or {}).get(EXTENDED) or {}) for name, block in parts]
    return merge(read.global_block, None if own is None else own.block), layers


def _origin(layers: list[tuple[str, Any]], detector: str, key: str, tool: str) -> str:
    """The strongest layer that says something about a setting; a tool's goes before all others."""
    from loopstream.detect.extended.limits import ToolSetting

    found = _DEFAULT
    for name, part in layers:
        if key == "mode" and "mode" in part:
            found = name
        if key in part.get("detectors", {}).get(detector, {}):
            found = name
    for name, part in layers:
        for pattern, setting in part.get("tools", {}).items():
            own = setting.get("detectors", {}).get(detector, {})
            said = key in own or (key == "mode" and "mode" in setting)
            if said and ToolSetting(pattern).matches(tool):
                found = f"{name}, tool {pattern}"
    return found
