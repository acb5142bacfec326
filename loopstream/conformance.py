"""Public: check an engine against vector files, field by field.

Files are ``.jsonl`` or ``.jsonl.gz`` in the form of SEMANTICS section 1, or settings cases in the
form of ``config.jsonl``. Another implementer can test against it by passing an own ``player``.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from loopstream.errors import DataError
from loopstream.policy.deployment import Profile
from loopstream.policy.settings import (
    merge,
    resolve,
    resolve_reference,
    resolved_view,
    strict_issues,
)
from loopstream.testing import Played, SessionDriver

_ABSENT: Final = "(absent)"
# What a line that has another form, or nests too deep, makes of itself when it is played.
_NO_SCENARIO: Final = (KeyError, TypeError, AttributeError, ValueError, RecursionError)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One field of one step that is not as expected; step -1 is the scenario's end."""

    file: str
    scenario: str
    step: int
    field: str
    expected: object
    got: object


@dataclass(slots=True)
class Report:
    """Totals over all files, and every mismatch."""

    scenarios: int = 0
    steps: int = 0
    mismatches: list[Mismatch] = field(default_factory=list)

    def closing_line(self) -> str:
        """The last line that ``loopstream conformance`` prints."""
        return f"scenarios={self.scenarios} steps={self.steps} mismatches={len(self.mismatches)}"


class Player(Protocol):
    """What is checked: plays one session's steps."""

    @property
    def history_length(self) -> int:
        """Records in the session's history."""
        ...

    def play(self, step: dict[str, Any]) -> Played:
        """Play one step."""
        ...


MakePlayer = Callable[[dict[str, Any], Profile], Player]


def engine_player(scenario: dict[str, Any], profile: Profile) -> Player:
    """Our engine, set up as the scenario says."""
    block = scenario.get("config")
    limits = resolve(block) if profile == "documented" else resolve_reference(block)
    return SessionDriver(limits, profile, veto=scenario.get("onCritical") == "veto")


def check_files(
    paths: Iterable[Path], profile: Profile, player: MakePlayer = engine_player
) -> Report:
    """Check every scenario of every file.

    Raises:
        DataError: a file can't be read or a line is no scenario; ``where`` is file and line.
    """
    report = Report()
    for path in paths:
        for number, case in _cases(path):
            try:
                found = list(_check_case(path.name, case, profile, player))
            except _NO_SCENARIO as error:
                raise DataError(
                    f"not a scenario: {type(error).__name__} {error}.",
                    where=f"{path}:{number}",
                    hint="See the form in docs/reference/vectors.md.",
                ) from error
            report.scenarios += 1
            report.steps += len(case.get("steps", ()))
            report.mismatches += found
    return report


def _cases(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield number, _case(path, number, line)
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise DataError(
            f"can't be read: {error}.", where=str(path), hint="Give .jsonl or .jsonl.gz files."
        ) from error


def _case(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        case = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"not JSON: {error}.", where=f"{path}:{number}") from error
    if not isinstance(case, dict):
        raise DataError("not an object.", where=f"{path}:{number}")
    return case


def _check_case(
    file: str, case: dict[str, Any], profile: Profile, make: MakePlayer
) -> Iterator[Mismatch]:
    if "steps" not in case:
        yield from _differences(file, case["id"], -1, _settings_expected(case), _settings_got(case))
        return
    player = make(case, profile)
    for number, step in enumerate(case["steps"]):
        played = player.play(step)
        expected = {name: step[name] for name in _CHECKED[step["op"]] if name in step}
        got = _GOT[step["op"]](played)
        yield from _differences(file, case["id"], number, expected, got)
    length = {"historyLength": player.history_length}
    yield from _differences(file, case["id"], -1, {"final": case["final"]}, {"final": length})


def _differences(
    file: str, scenario: str, step: int, expected: dict[str, Any], got: dict[str, Any]
) -> Iterator[Mismatch]:
    for name in sorted(expected.keys() | got.keys()):
        want, have = expected.get(name, _ABSENT), got.get(name, _ABSENT)
        if want == have:
            continue
        if isinstance(want, dict) and isinstance(have, dict):
            for inner in _differences(file, scenario, step, want, have):
                yield Mismatch(
                    file, scenario, step, f"{name}.{inner.field}", inner.expected, inner.got
                )
        else:
            yield Mismatch(file, scenario, step, name, want, have)


# -- what a step is compared by ------------------------------------------------------------

_CHECKED: Final = {
    "call": ("argsHash", "expect"),
    "outcome": ("resultHash", "unknownTool", "guard", "outcomeKind", "noProgress"),
    "compaction": (),
}
_KINDS_SHOWN: Final = ("tool-loop-veto", "terminal-exec-failure")


def _call(played: Played) -> dict[str, Any]:
    return {"argsHash": played.args_hash, "expect": _finding(played)}


def _finding(played: Played) -> dict[str, Any] | None:
    finding = played.finding
    if finding is None:
        return None
    fields: dict[str, Any] = {
        "level": finding.level.value,
        "detector": finding.detector.value,
        "count": finding.count,
        "warningKey": finding.key,
    }
    if finding.paired_tool is not None:
        fields["pairedTool"] = finding.paired_tool
    if finding.liveness is not None:
        fields["livenessSignal"] = finding.liveness
    if finding.level.value == "warning":
        fields["emit"] = played.step.announced
    return fields


def _outcome(played: Played) -> dict[str, Any]:
    outcome = played.outcome
    fields: dict[str, Any] = {"resultHash": outcome.result if outcome else None}
    if outcome is not None and outcome.unknown_tool is not None:
        fields["unknownTool"] = outcome.unknown_tool
    if outcome is not None and outcome.kind is not None and outcome.kind.value in _KINDS_SHOWN:
        fields["outcomeKind"] = outcome.kind.value
    if outcome is not None and outcome.no_progress:
        fields["noProgress"] = True
    guard = played.step.guard
    if played.guarded:
        fields["guard"] = {
            "abort": guard.abort,
            "armed": guard.armed,
            "remaining": guard.remaining,
        }
        if guard.abort:
            fields["guard"] |= {"count": guard.count, "detector": "compaction_loop_persisted"}
    return fields


_GOT: Final[dict[str, Callable[[Played], dict[str, Any]]]] = {
    "call": _call,
    "outcome": _outcome,
    "compaction": lambda _: {},
}


def _settings_expected(case: dict[str, Any]) -> dict[str, Any]:
    return {name: case[name] for name in ("merged", "resolved", "guard", "strictSchema")}


def _settings_got(case: dict[str, Any]) -> dict[str, Any]:
    merged = merge(case.get("globalConfig"), case.get("agentConfig"))
    view = resolved_view(resolve(merged))
    strict: dict[str, Any] = {}
    for scope in ("global", "agent"):
        issues = strict_issues(case.get(f"{scope}Config"))
        strict[scope] = not issues
        if issues:
            strict[f"{scope}Issues"] = issues
    return {
        "merged": merged,
        "resolved": view["resolved"],
        "guard": view["guard"],
        "strictSchema": strict,
    }
