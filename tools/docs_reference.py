"""Writes the generated pages of docs/reference: ``python -m tools.docs_reference [--check]``.

Each page is made of the code itself, so that it can't say anything else: the settings of the tree,
the verbs of typer, the metrics of the table, the codes of the error tree and of the enums.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from inspect import signature
from pathlib import Path
from typing import Any, Final, get_args, get_type_hints

import typer
from typer.models import ArgumentInfo, OptionInfo

import loopstream
from loopstream import errors
from loopstream.cli import EXIT_INTERRUPTED
from loopstream.cli.app import app, root
from loopstream.config import load
from loopstream.detect.base import DetectorName
from loopstream.detect.profiles import PROFILES
from loopstream.errors import LoopstreamError
from loopstream.events import Action, Level, RejectCode, Verdict
from loopstream.runtime.metrics import METRICS, NOTES, SUPPRESSED
from loopstream.sdk.counters import NAMES
from loopstream.sdk.metrics import LEVELS
from loopstream.sdk.metrics import PREFIX as SDK_PREFIX
from tools.docs_texts import (
    ACTIONS,
    COMPLETION,
    ERRORS_INTRO,
    METRICS_INTRO,
    METRICS_NOTES,
    REJECTS,
    REJECTS_INTRO,
)

FOLDER: Final = Path(__file__).resolve().parents[1] / "docs" / "reference"
MADE: Final = "<!-- Made by `make docs-reference`; do not edit by hand. -->"

# Modules that do something when they are imported.
_PROGRAMS: Final = ("__main__", "_launch", "lock", "app")


def settings_table() -> list[str]:
    """The rows of the settings page, as its test wants them."""
    rows = load().rows()
    return [
        f"| `{row.setting}` | {f'`{row.value}`' if row.value else ''} "
        f"| {row.about.replace('``', '`')} |"
        for row in rows
    ]


def settings_page(page: str) -> str:
    """The settings page with its table made anew; what is written around it stays."""
    lines = page.splitlines()
    at = [number for number, line in enumerate(lines) if line.startswith("| `")]
    return "\n".join([*lines[: at[0]], *settings_table(), *lines[at[-1] + 1 :]]) + "\n"


def cli_page() -> str:
    """All verbs with their help."""
    lines = ["# Command line", "", MADE, "", _prose(root.__doc__), ""]
    lines += [COMPLETION]
    for path, verb in verbs(app, "loopstream"):
        lines += [f"## {path}", "", _prose(verb.__doc__), "", *_options(verb)]
    return "\n".join(lines).rstrip() + "\n"


def verbs(group: typer.Typer, path: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every verb as it is typed, and its function."""
    for command in group.registered_commands:
        if command.callback is not None and not command.hidden:
            name = command.name or command.callback.__name__
            yield f"{path} {name}", command.callback
    for child in group.registered_groups:
        if child.typer_instance is not None:
            yield from verbs(child.typer_instance, f"{path} {child.name}")


def parameters(verb: Callable[..., Any]) -> Iterator[tuple[list[str], str, Any]]:
    """Of a verb: the names (of an argument: none), the help, and the type."""
    hints = get_type_hints(verb, include_extras=True)
    for name in signature(verb).parameters:
        kind, *told = get_args(hints[name])
        (info,) = [each for each in told if isinstance(each, ArgumentInfo | OptionInfo)]
        names: list[str] = []
        if isinstance(info, OptionInfo):
            # Within Annotated the first name stands where a default would.
            named = (info.default, *(info.param_decls or ()))
            names = [each for each in named if isinstance(each, str) and each.startswith("-")]
            names = names or [f"--{name.replace('_', '-')}"]
        yield names, " ".join((info.help or "").split()), kind if names else (name, info.metavar)


def _prose(text: str | None) -> str:
    return inspect.cleandoc(text or "")


def _options(verb: Callable[..., Any]) -> Iterator[str]:
    yield "| argument or option | meaning |"
    yield "|---|---|"
    for names, about, kind in parameters(verb):
        shown = _names(tuple(names)) if names else f"`{(kind[1] or kind[0]).upper()}`"
        yield f"| {shown} | {about.replace('|', chr(92) + '|')}{_choices(kind)} |"
    yield ""


def _choices(kind: Any) -> str:
    for each in (kind, *get_args(kind)):
        if isinstance(each, type) and issubclass(each, Enum):
            return f" One of {_names(tuple(str(choice.value) for choice in each))}."
    return ""


def metrics_page() -> str:
    """All metrics of worker and SDK."""
    lines = ["# Metrics", "", MADE, "", METRICS_INTRO]
    lines += ["| metric | type | labels | meaning |", "|---|---|---|---|"]
    lines += [
        f"| `{metric.full_name}` | {metric.kind} | {_names(metric.labels)} | {metric.help} |"
        for metric in METRICS
    ]
    lines += ["", METRICS_NOTES.format(suppressed=_names(SUPPRESSED), notes=_names(NOTES))]
    lines += ["| metric | type |", "|---|---|"]
    lines += [f"| `{SDK_PREFIX}{name}_total` | counter |" for name in NAMES]
    lines += [f"| `{SDK_PREFIX}{name}` | gauge |" for name in (*LEVELS, "healthy")]
    return "\n".join(lines) + "\n"


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def errors_page() -> str:
    """Exit codes, error codes and reject codes."""
    lines = ["# Errors", "", MADE, "", "## Exit codes", "", "| code | meaning |", "|---|---|"]
    lines += [f"| {code} | {text} |" for code, text in _exits()]
    lines += ["", "## Error codes", "", ERRORS_INTRO]
    lines += ["| code | exit | retry helps | meaning |", "|---|---|---|---|"]
    for kind in _kinds():
        retry = "yes" if kind.retriable else "no"
        lines.append(f"| `{kind.code}` | {kind.exit_code} | {retry} | {_first(kind)} |")
    lines += ["", "## Reject codes", "", REJECTS_INTRO]
    lines += ["| code | meaning | what to do |", "|---|---|---|"]
    lines += [f"| `{code}` | {REJECTS[code][0]} | {REJECTS[code][1]} |" for code in RejectCode]
    return "\n".join(lines) + "\n"


def _exits() -> Iterator[tuple[int, str]]:
    yield errors.EXIT_OK, "Clean."
    yield errors.EXIT_VERDICT, "A verdict at or above `--fail-on`, or a mismatch."
    yield errors.EXIT_USAGE, "The command line makes no sense."
    yield errors.EXIT_SETTINGS, "A setting is missing, unknown or wrong, or the brokers refuse us."
    yield errors.EXIT_KAFKA, "Kafka is unreachable, or a topic is missing or does not fit."
    yield errors.EXIT_DATA, "Data that can't be decoded, or a file of it that can't be read."
    yield errors.EXIT_RESTART, "The worker gave up, to be started again; nothing was committed."
    yield EXIT_INTERRUPTED, "Ctrl-C, before the command had come to its end."


def _kinds() -> list[type[LoopstreamError]]:
    for module in pkgutil.walk_packages(loopstream.__path__, "loopstream."):
        if module.name.rpartition(".")[2] not in _PROGRAMS:
            importlib.import_module(module.name)
    found: dict[str, type[LoopstreamError]] = {}
    waiting = LoopstreamError.__subclasses__()
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if "code" in vars(kind):
            found.setdefault(kind.code, kind)
    return [found[code] for code in sorted(found)]


def _first(kind: type) -> str:
    return " ".join((kind.__doc__ or "").strip().split("\n\n")[0].split()).replace("`", "")


def verdicts_page() -> str:
    """Fields, actions, levels and detectors."""
    lines = [
        "# Verdicts",
        "",
        MADE,
        "",
        "What each asks of a runner is told in [the wire](wire.md).",
    ]
    lines += ["", "## Actions", "", "| action | meaning |", "|---|---|"]
    lines += [f"| `{action}` | {ACTIONS[action]} |" for action in Action]
    lines += ["", f"Levels are {_names(tuple(Level))}.", "", "## Detectors", ""]
    lines += ["| detector | reacts to | in profiles |", "|---|---|---|"]
    lines += [f"| `{name}` | {about} | {profiles} |" for name, about, profiles in _detectors()]
    lines += ["", "## Fields", "", "| field | type | meaning |", "|---|---|---|"]
    schema = Verdict.model_json_schema(by_alias=True)
    for name, field in schema["properties"].items():
        about = " ".join(field.get("description", "").split()).replace("``", "`")
        lines.append(f"| `{name}` | {_type(field)} | {about} |")
    return "\n".join(lines) + "\n"


def _detectors() -> Iterator[tuple[str, str, str]]:
    seen: dict[str, tuple[str, dict[str, None]]] = {}
    for profile in PROFILES.values():
        for detector in profile.detectors:
            about = _first(type(detector)).removeprefix("Reacts to ")
            seen.setdefault(detector.name.value, (about, {}))[1][f"`{profile.name}`"] = None
    for name, (about, profiles) in seen.items():
        yield name, about, ", ".join(profiles)
    guard = "the same call with the same outcome again, right after the context was compacted."
    yield DetectorName.GUARD.value, guard, "all, by `postCompactionGuard`"


def _type(field: Mapping[str, Any]) -> str:
    options = [kind for kind in field.get("anyOf", [field]) if kind.get("type") != "null"]
    kind = options[0]
    if "enum" in kind:
        return ", ".join(f"`{value}`" for value in kind["enum"])
    if "$ref" in kind:
        return str(kind["$ref"]).rpartition("/")[2]
    if "const" in kind:
        return f"`{kind['const']}`"
    return str(kind.get("type", "any"))


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "cli.md": cli_page,
    "errors.md": errors_page,
    "metrics.md": metrics_page,
    "verdicts.md": verdicts_page,
    "settings.md": lambda: settings_page((FOLDER / "settings.md").read_text(encoding="utf-8")),
}


def main(arguments: list[str]) -> int:
    """Write the pages, or with ``--check`` tell which differ; exit code 1 if any does."""
    differing = []
    for name, make in PAGES.items():
        path, text = FOLDER / name, make()
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        differing.append(name)
        if "--check" not in arguments:
            path.write_text(text, encoding="utf-8")
    for name in differing:
        sys.stderr.write(
            f"docs/reference/{name}: {'differs' if '--check' in arguments else 'written'}\n"
        )
    return 1 if differing and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
