"""Detector settings as operators keep them: the documented JSON file.

Read are ``tools.loopDetection`` and ``agents.list[].tools.loopDetection``; all other keys are
someone else's and are left alone. A file that is one block by itself is the global block. Comments
and trailing commas (JSON5) are taken.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyjson5

from loopstream.errors import DataError, SettingsError
from loopstream.policy import settings
from loopstream.policy.rollout import BY_DETECTOR, MODE

GLOBAL_KEY: Final = "*"
MAX_FILE_BYTES: Final = 4 * 1024 * 1024
MAX_DEPTH: Final = 128
MAX_AGENT_ID: Final = 128
# The bound of a control record's body, which carries the block into the events.
MAX_BLOCK_BYTES: Final = 65_536

_NEAR: Final = re.compile(r"near (\d+)")
_BLOCK: Final = "tools.loopDetection"


@dataclass(frozen=True, slots=True)
class NamedBlock:
    """One settings block: whose it is (agent id or ``*``), and its path in the file."""

    key: str
    path: str
    block: Mapping[str, Any]

    @property
    def value(self) -> bytes:
        """The block as a record value of the config topic."""
        return json.dumps(self.block, ensure_ascii=False, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class BlocksFile:
    """The blocks of a file, the global one first."""

    file: Path
    blocks: tuple[NamedBlock, ...]

    @property
    def global_block(self) -> Mapping[str, Any] | None:
        """The block for all agents, if the file has one."""
        return next((named.block for named in self.blocks if named.key == GLOBAL_KEY), None)

    def in_force(self, named: NamedBlock) -> Mapping[str, Any]:
        """What a block amounts to once the global one lies under it."""
        if named.key == GLOBAL_KEY:
            return named.block
        return settings.merge(self.global_block, named.block) or {}


def read_blocks(file: Path) -> BlocksFile:
    """Read the detector settings of a file.

    Raises:
        DataError: the file can't be read.
        SettingsError: it is not JSON, holds no settings, or a block is malformed or beyond the
            bounds of a run's row.
    """
    document = _parse(file)
    blocks = tuple(_find(document, file))
    if not blocks:
        hint = f"Expected {_BLOCK}, agents.list[].{_BLOCK}, or one block by itself."
        raise SettingsError("holds no loop detection settings.", where=str(file), hint=hint)
    _check_unique(blocks, file)
    for named in blocks:
        _check(named, file)
    return BlocksFile(file, blocks)


def _parse(file: Path) -> Mapping[str, Any]:
    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
        text = data.decode("utf-8")
    except OSError as error:
        raise DataError(f"can't be read: {error.strerror}.", where=str(file)) from None
    except UnicodeDecodeError as error:
        raise SettingsError(f"can't be read: {error}.", where=str(file)) from None
    if len(data) > MAX_FILE_BYTES:
        raise SettingsError(f"is over {MAX_FILE_BYTES} bytes.", where=str(file))
    try:
        document = pyjson5.decode(text, maxdepth=MAX_DEPTH)
    except pyjson5.Json5Exception as error:
        raise _not_json(text, str(error.args[0]), file) from None
    if not isinstance(document, dict):
        raise SettingsError("is no JSON object.", where=str(file))
    return document


def _not_json(text: str, message: str, file: Path) -> SettingsError:
    near = _NEAR.search(message)
    if near is None:
        return SettingsError("is not JSON.", where=str(file))
    line = text.count("\n", 0, int(near[1])) + 1
    return SettingsError("is not JSON (nor JSON5).", where=f"{file}:{line}")


def _find(document: Mapping[str, Any], file: Path) -> Iterator[NamedBlock]:
    if "tools" not in document and "agents" not in document:
        if any(key in document for key in (*settings.KEYS, MODE, BY_DETECTOR)):
            yield NamedBlock(GLOBAL_KEY, "(the file)", document)
        return
    if (block := _loop_detection(document)) is not None:
        yield NamedBlock(GLOBAL_KEY, _BLOCK, block)
    for index, agent in enumerate(_agents(document)):
        if (block := _loop_detection(agent)) is not None:
            path = f"agents.list[{index}].{_BLOCK}"
            yield NamedBlock(_agent_id(agent, file, path), path, block)


def _loop_detection(holder: object) -> Any:
    tools = holder.get("tools") if isinstance(holder, dict) else None
    return tools.get("loopDetection") if isinstance(tools, dict) else None


def _agents(document: Mapping[str, Any]) -> list[Any]:
    agents = document.get("agents")
    listed = agents.get("list") if isinstance(agents, dict) else None
    return listed if isinstance(listed, list) else []


def _agent_id(agent: Mapping[str, Any], file: Path, path: str) -> str:
    name = agent.get("id")
    if isinstance(name, str) and name and name != GLOBAL_KEY and len(name) <= MAX_AGENT_ID:
        return name
    message = f"the agent of {path} has no usable id."
    hint = f"An id is a text of 1 to {MAX_AGENT_ID} characters other than {GLOBAL_KEY}."
    raise SettingsError(message, where=str(file), hint=hint)


def _check_unique(blocks: tuple[NamedBlock, ...], file: Path) -> None:
    seen: dict[str, str] = {}
    for named in blocks:
        if named.key in seen:
            message = f"{seen[named.key]} and {named.path} are both for agent {named.key}."
            raise SettingsError(message, where=str(file))
        seen[named.key] = named.path


def _check(named: NamedBlock, file: Path) -> None:
    if (reason := settings.refuse(named.block)) is not None:
        raise SettingsError(f"{named.path}: {reason}.", where=str(file))
    try:
        text = json.dumps(named.block, allow_nan=False, ensure_ascii=False)
        size = len(text.encode())
    except ValueError:
        message = f"{named.path} holds a number that JSON has no form for."
        raise SettingsError(message, where=str(file)) from None
    if size > MAX_BLOCK_BYTES:
        raise SettingsError(f"{named.path} is over {MAX_BLOCK_BYTES} bytes.", where=str(file))
