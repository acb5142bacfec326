"""``loopstream acls``: the least that each kind of user must be allowed."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Final

import typer

from loopstream.cli.console import Output, print_line, show
from loopstream.cli.examine import GROUP_RIGHTS, RIGHTS, Role
from loopstream.cli.options import (
    Bootstrap,
    ConfigFile,
    OutputForm,
    Prefix,
    SetValues,
    settings_of,
)
from loopstream.errors import UsageError

_COLUMNS: Final = ("role", "principal", "resource", "name", "operations")


def acls(
    role: Annotated[
        list[Role] | None, typer.Option("--role", help="Only of this one; may be repeated.")
    ] = None,
    principal: Annotated[
        str | None,
        typer.Option("--principal", help="Who has it [default: User:<prefix>-<role>]."),
    ] = None,
    commands: Annotated[
        bool, typer.Option("--commands", help="As commands of Kafka's kafka-acls.sh.")
    ] = False,
    output: OutputForm = Output.TABLE,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    config: ConfigFile = None,
    values: SetValues = None,
) -> None:
    """Print the ACLs of a prefix: who must be allowed what, and nothing beyond.

    Nothing is asked of Kafka, and nothing is changed. Nobody is allowed to create topics: that is
    the installer's (`topics create`). A cluster must refuse what no ACL allows, as it does unless
    `allow.everyone.if.no.acl.found` is set.

    ```console
    $ loopstream acls
    $ loopstream acls --role runner --principal User:fleet --commands | sh
    ```
    """
    settings = settings_of(bootstrap, prefix, config, values)
    rows = list(rights(settings.prefix, role or list(Role), principal))
    if not commands:
        show(rows if output is not Output.TABLE else _worded(rows), _COLUMNS, output)
    elif output is not Output.TABLE:
        raise UsageError("--commands is a form of its own.", hint="Leave -o away.")
    else:
        for row in rows:
            print_line(_command(settings.bootstrap, row))


def rights(
    prefix: str, roles: Sequence[Role], principal: str | None = None
) -> Iterator[dict[str, Any]]:
    """One ACL a row: all names are literal, so a tenant's rights end with its prefix."""
    from loopstream.runtime.topics import Topics

    topics = Topics(prefix)
    for role in roles:
        who = {"role": role.value, "principal": principal or f"User:{prefix}-{role.value}"}
        for name, operations in RIGHTS[role].items():
            topic = getattr(topics, name)
            yield who | {"resource": "topic", "name": topic, "operations": sorted(operations)}
        if operations := GROUP_RIGHTS.get(role, frozenset()):
            group = f"{prefix}.worker"
            yield who | {"resource": "group", "name": group, "operations": sorted(operations)}


def _worded(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for row in rows:
        yield row | {"operations": ", ".join(_name(one) for one in row["operations"])}


def _name(operation: str) -> str:
    """``DESCRIBE_CONFIGS`` as Kafka's tools write it."""
    return "".join(word.capitalize() for word in operation.split("_"))


def _command(bootstrap: str, row: dict[str, Any]) -> str:
    words = ["kafka-acls.sh", "--bootstrap-server", bootstrap, "--add"]
    words += ["--allow-principal", row["principal"]]
    words += [word for one in row["operations"] for word in ("--operation", _name(one))]
    return shlex.join([*words, f"--{row['resource']}", row["name"]])
