"""Where ``loopstream up --demo`` plays: never in a deployment that somebody uses."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from loopstream.errors import UsageError

if TYPE_CHECKING:
    from loopstream.config import Loaded, Settings

_ON_COMMAND_LINE = "command line"


@contextmanager
def told_only_here() -> Iterator[None]:
    """Hide settings of the environment and of ``loopstream.toml``, from child processes as well."""
    from loopstream.config.load import FILE_VARIABLE, OTHER_VARIABLES
    from loopstream.config.tree import ENV_PREFIX

    kept = OTHER_VARIABLES - {FILE_VARIABLE}
    hidden = {
        name: value
        for name, value in os.environ.items()
        if name.upper().startswith(ENV_PREFIX) and name.upper() not in kept
    }
    for name in hidden:
        del os.environ[name]
    os.environ[FILE_VARIABLE] = os.devnull
    try:
        yield
    finally:
        del os.environ[FILE_VARIABLE]
        os.environ.update(hidden)


def names_brokers(bootstrap: str | None, values: list[str] | None) -> bool:
    """Whether the command line says which brokers to play on."""
    return bootstrap is not None or any(text.startswith("bootstrap=") for text in values or ())


def demo_settings(loaded: Loaded, data_dir: Path | None) -> Settings:
    """Settings that the demo can't do harm with.

    On a broker that others use, or that keeps its topics, it gets a prefix of its own.

    Raises:
        UsageError: the command line asks for a prefix there, or for security on a broker of ours.
    """
    from loopstream.config import SecuritySettings

    settings = loaded.settings
    named = _said(loaded, "bootstrap")
    if not named and settings.security != SecuritySettings():
        hint = "Leave them away, or name brokers with --bootstrap."
        raise UsageError("the demo's own broker takes no security settings.", hint=hint)
    if not named and data_dir is None:
        default = type(settings).model_fields["prefix"].default
        prefix = settings.prefix if _said(loaded, "prefix") else default
        return settings.model_copy(update={"prefix": prefix})
    if _said(loaded, "prefix"):
        raise UsageError(
            "the demo takes a prefix of its own where topics outlive it.",
            where="--prefix",
            hint="Leave --prefix away: no deployment is touched then.",
        )
    return settings.model_copy(update={"prefix": f"demo-{secrets.token_hex(4)}"})


def _said(loaded: Loaded, key: str) -> bool:
    return loaded.origins.get(key, "").startswith(_ON_COMMAND_LINE)
