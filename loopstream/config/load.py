"""Settings from their sources, each value with its origin.

Order: command line over environment over ``loopstream.toml`` over default. A key that no section
knows is refused and named with the place where it stands.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource
from pydantic_settings.exceptions import SettingsError as MalformedEnvironment

from loopstream.config.tree import ENV_DELIMITER, ENV_PREFIX, Settings
from loopstream.errors import SettingsError

DEFAULT_FILE: Final = Path("loopstream.toml")
FILE_VARIABLE: Final = "LOOPSTREAM_CONFIG"
# Read elsewhere (`loopstream.broker`): no settings of a process, and no mistakes.
OTHER_VARIABLES: Final = frozenset(
    {FILE_VARIABLE, "LOOPSTREAM_CACHE_DIR", "LOOPSTREAM_MAVEN_REPOSITORY"}
)
DEFAULT: Final = "default"

_HEADER: Final = re.compile(r"^\s*\[\s*([\w.-]+)\s*\]")
_KEY: Final = re.compile(r"^\s*([\w.-]+)\s*=")
_AT_LINE: Final = re.compile(r"\(at line (\d+)")

Tree = dict[str, Any]
KeyPath = tuple[str, ...]


class _Given(Settings):
    """Settings from what `load` has laid together; it looks at no source by itself."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take the values given, and nothing else."""
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)


class Row(NamedTuple):
    """One setting: dotted key, value as text (secrets masked), where it is from, and its use."""

    setting: str
    value: str
    origin: str
    about: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings, and where each value comes from, by dotted key."""

    settings: Settings
    origins: Mapping[str, str]

    def rows(self) -> Iterator[Row]:
        """All settings in the order of the tree."""
        for path, value, about in _leaves(self.settings):
            key = ".".join(path)
            shown = "" if value is None else str(value)
            yield Row(key, shown, self.origins.get(key, DEFAULT), about)


def load(overrides: Mapping[str, object] | None = None, *, file: Path | None = None) -> Loaded:
    """Read the settings.

    Args:
        overrides: what the command line says, by dotted key; None values are not said.
        file: settings file; None: that of ``LOOPSTREAM_CONFIG``, else ``loopstream.toml`` of the
            working directory if it is there.

    Raises:
        SettingsError: a value is unknown, malformed or out of bounds, or the file can't be read.
    """
    tree: Tree = {}
    origins: dict[str, str] = {}
    for layer, where in (_from_file(file), _from_environment(), _from_overrides(overrides or {})):
        _overlay(tree, layer)
        origins.update({".".join(path): _nearest(where, path) for path in _paths(layer)})
    try:
        return Loaded(_Given(**tree), origins)
    except ValidationError as error:
        raise _explained(error, origins) from None


def _from_overrides(overrides: Mapping[str, object]) -> tuple[Tree, dict[KeyPath, str]]:
    tree: Tree = {}
    where: dict[KeyPath, str] = {}
    for key, value in overrides.items():
        if value is not None:
            path = tuple(key.split("."))
            _overlay(tree, _nested(path, value))
            where[path] = f"command line ({key})"
    return tree, where


def _from_environment() -> tuple[Tree, dict[KeyPath, str]]:
    try:
        tree = EnvSettingsSource(Settings)()
    except MalformedEnvironment as error:
        raise SettingsError(str(error), where="environment") from None
    where: dict[KeyPath, str] = {}
    for name in os.environ:
        if name.upper().startswith(ENV_PREFIX) and name.upper() not in OTHER_VARIABLES:
            path = tuple(name[len(ENV_PREFIX) :].lower().split(ENV_DELIMITER))
            if path[0] not in Settings.model_fields:
                raise _unknown(".".join(path), f"environment {name}")
            where[path] = f"environment {name}"
    return tree, where


def _from_file(file: Path | None) -> tuple[Tree, dict[KeyPath, str]]:
    named = file or (Path(os.environ[FILE_VARIABLE]) if os.environ.get(FILE_VARIABLE) else None)
    path = named or DEFAULT_FILE
    if named is None and not path.exists():
        return {}, {}
    try:
        text = path.read_text(encoding="utf-8")
        tree = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"can't be read: {error}.", where=str(path)) from None
    except tomllib.TOMLDecodeError as error:
        line = _AT_LINE.search(str(error))
        where = f"{path}:{line[1]}" if line else str(path)
        raise SettingsError(f"is not TOML: {error}.", where=where) from None
    return tree, {key: f"{path}:{line}" for key, line in _lines(text)}


def _lines(text: str) -> Iterator[tuple[KeyPath, int]]:
    """Keys of a TOML text with their lines; bare keys only, as ours all are."""
    table: KeyPath = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            table = tuple(header[1].split("."))
            yield table, number
        elif key := _KEY.match(line):
            yield (*table, *key[1].split(".")), number


def _overlay(tree: Tree, layer: Mapping[str, Any]) -> None:
    for key, value in layer.items():
        if isinstance(value, dict) and isinstance(tree.get(key), dict):
            _overlay(tree[key], value)
        else:
            tree[key] = value


def _nested(path: KeyPath, value: object) -> Tree:
    tree: Tree = {path[-1]: value}
    for key in reversed(path[:-1]):
        tree = {key: tree}
    return tree


def _paths(tree: Mapping[str, Any], path: KeyPath = ()) -> Iterator[KeyPath]:
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield from _paths(value, (*path, key))
        else:
            yield (*path, key)


def _nearest(where: Mapping[KeyPath, str], path: KeyPath) -> str:
    """Where a value stands; for one within an inline table or JSON text, where that stands."""
    while path and path not in where:
        path = path[:-1]
    return where.get(path, "")


def _leaves(section: BaseModel, path: KeyPath = ()) -> Iterator[tuple[KeyPath, object, str]]:
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            yield from _leaves(value, (*path, name))
        else:
            yield (*path, name), value, " ".join((field.description or "").split())


def _explained(error: ValidationError, origins: Mapping[str, str]) -> SettingsError:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    within = (place for name, place in origins.items() if name.startswith(f"{key}."))
    where = origins.get(key) or next(within, None)
    if first["type"] == "extra_forbidden":
        return _unknown(key, where)
    message = first["msg"].removeprefix("Value error, ")
    hint = "See `loopstream config show` for all settings."
    return SettingsError(f"{key}: {message}.", where=where, hint=hint)


def _unknown(key: str, where: str | None) -> SettingsError:
    near = get_close_matches(key, [".".join(path) for path, *_ in _leaves(_Given())], n=1)
    meant = f" Did you mean {near[0]}?" if near else ""
    hint = "See `loopstream config show` for all settings."
    return SettingsError(f"{key} is no setting.{meant}", where=where, hint=hint)
