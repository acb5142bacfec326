"""What is to be said about detector settings: by ``config check`` and ``push``, ``up``, ``doctor``.

A *mistake* does not mean what it says (a misspelt setting, a value that is not used); the other
notes are about settings that are taken as they are, and may surprise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopstream.cli.console import say
from loopstream.errors import SettingsError

if TYPE_CHECKING:
    from loopstream.config import BlocksFile, NamedBlock
    from loopstream.policy.advice import Note
    from loopstream.policy.deployment import Profile


def notes_of(read: BlocksFile, named: NamedBlock, profile: Profile | None = None) -> Iterator[Note]:
    """Notes on a block in force; of an agent's only those that the global block has not.

    Args:
        profile: the deployment's; None: it is not known.
    """
    from loopstream.config import GLOBAL_KEY
    from loopstream.policy.advice import explain

    known = [] if named.key == GLOBAL_KEY else explain(read.global_block, profile)
    for note in explain(read.in_force(named), profile):
        if note not in known:
            yield note


def line_of(note: Note) -> str:
    """A note as one line."""
    return f"{note.kind.replace('_', ' ')}: {note.text}"


def warn(read: BlocksFile, profile: Profile, *, force: bool = False) -> None:
    """Say all notes on stderr, before the settings of a file are pushed.

    Args:
        profile: the deployment's.
        force: whether mistakes are let through.

    Raises:
        SettingsError: there is a mistake, and it is not forced.
    """
    mistakes = 0
    for named in read.blocks:
        for note in notes_of(read, named, profile):
            say(f"{named.key}: {line_of(note)}")
            mistakes += note.mistake
    if mistakes and not force:
        raise SettingsError(
            f"{mistakes} of the settings would not be heeded: nothing was pushed.",
            where=str(read.file),
            hint="Correct them; or push all the same with: loopstream config push --force FILE",
        )


def as_file(blocks: Mapping[str, Any], topic: str) -> BlocksFile:
    """Blocks by key, as the config topic has them, in the shape of a file."""
    from loopstream.config import GLOBAL_KEY, BlocksFile, NamedBlock

    order = sorted(blocks, key=lambda key: (key != GLOBAL_KEY, key))
    return BlocksFile(Path(topic), tuple(NamedBlock(key, "", blocks[key]) for key in order))


def switched_on(blocks: Mapping[str, Any]) -> list[str]:
    """Keys of the blocks that switch detection on."""
    return [
        key
        for key, block in blocks.items()
        if isinstance(block, Mapping) and block.get("enabled") is True
    ]
