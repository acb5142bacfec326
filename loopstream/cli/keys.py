"""``loopstream keys``: make the keys of signed records, and issue them to runners."""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from loopstream.cli.console import print_line, say
from loopstream.cli.options import Bootstrap, ConfigFile, Prefix, SetValues, settings_of
from loopstream.errors import SettingsError, UsageError

if TYPE_CHECKING:
    from loopstream.wire.keys import MasterKey

_OWNER_ALONE: Final = 0o600
_HEAD: Final = "# Keys of signed records: the first signs, all verify. For workers alone.\n"


def new(
    file: Annotated[Path, typer.Argument(help="File of `signing.file`; made if it is not there.")],
    name: Annotated[
        str | None, typer.Option("--id", help="Id of the key [default: today's date].")
    ] = None,
) -> None:
    """Make a new master key and add it to a file of keys, which only its owner can read.

    The first key of a file signs. A key that is added stands last: it verifies from now on, and
    signs once its line is moved to the front.

    ```console
    $ loopstream keys new signing.keys
    $ loopstream keys new signing.keys --id 2027
    ```
    """
    from loopstream.wire.keys import MasterKey, is_key_id, key_line

    held = _held(file)
    made = MasterKey(name or _dated(held), secrets.token_bytes(32))
    if not is_key_id(made.id):
        raise UsageError("is up to 32 letters, digits, dots, dashes or underscores.", where="--id")
    if made.id in {key.id for key in held}:
        raise UsageError(f"{made.id} is the id of another key in {file}.", where="--id")
    _write(file, _HEAD, (key_line(key) for key in (*held, made)))
    use = "verifies; it signs once its line is the first" if held else "signs"
    say(f"{file}: the key {made.id} {use}")


def issue(
    runner: Annotated[str, typer.Argument(help="Id of the runner, as in Runner(runner=...).")],
    key_id: Annotated[
        list[str] | None,
        typer.Option("--key-id", help="Only of this master key; may be repeated, in this order."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Write it here, for the owner alone, instead of to stdout."),
    ] = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    config: ConfigFile = None,
    values: SetValues = None,
) -> None:
    """Derive the key of a runner from the master keys of `signing.file`.

    What is written goes to that runner, as `Runner(..., signing_key=...)`, and to nobody else. It
    signs events of its own runs and checks the verdicts on them; it is good for no other runner.
    If others can read the master keys, stderr says so.

    ```console
    $ loopstream keys issue runner-7 --set signing.file=signing.keys --out runner-7.key
    ```
    """
    from loopstream.sdk.names import bounded_id
    from loopstream.wire.keys import key_line

    if not runner.strip():
        raise UsageError("a runner has an id.")
    settings = settings_of(bootstrap, prefix, config, values)
    _warn_of_readers(settings.signing.file)
    keys = _chosen(settings.signing.read(), key_id)
    lines = [key_line(key.issue(bounded_id(runner))) for key in keys]
    if out is None:
        for line in lines:
            print_line(line)
        return
    _write(out, "# Key of one loopstream runner: the first line signs, all verify.\n", lines)
    say(f"{out}: the key of {runner}, from {', '.join(key.id for key in keys)}")


def _warn_of_readers(file: Path | None) -> None:
    """Say so if others than the owner can read the master keys."""
    try:
        mode = 0 if file is None else file.stat().st_mode
    except OSError:
        return  # told by whoever reads it
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        say(f"{file}: others than its owner can read these master keys; do: chmod 600 {file}")


def _held(file: Path) -> tuple[MasterKey, ...]:
    from loopstream.config import SigningSettings

    return SigningSettings(file=file).read() if file.exists() else ()


def _dated(held: Iterable[MasterKey]) -> str:
    """Today's date, or that with a number if it is taken."""
    today, taken = time.strftime("%Y-%m-%d"), {key.id for key in held}
    numbered = (f"{today}-{number}" for number in range(2, len(taken) + 3))
    return next(name for name in (today, *numbered) if name not in taken)


def _chosen(keys: tuple[MasterKey, ...], wanted: list[str] | None) -> list[MasterKey]:
    if not keys:
        hint = "Make one: loopstream keys new FILE; then name it with --set signing.file=FILE."
        raise SettingsError("there is no master key.", where="signing.file", hint=hint)
    known = {key.id: key for key in keys}
    if missing := [name for name in wanted or () if name not in known]:
        hint = f"It has: {', '.join(known)}."
        raise UsageError(f"signing.file has no key {', '.join(missing)}.", hint=hint)
    return [known[name] for name in wanted or known]


def _write(path: Path, head: str, lines: Iterable[str]) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ALONE)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(head)
            file.writelines(f"{line}\n" for line in lines)
            file.flush()
            os.fsync(handle)
        beside.replace(path)
    except OSError as error:
        raise UsageError(f"can't be written: {error.strerror}.", where=str(path)) from None
    finally:
        beside.unlink(missing_ok=True)
