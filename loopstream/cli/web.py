"""``loopstream web``: the dashboard."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loopstream.cli.console import print_line, say
from loopstream.cli.options import Bootstrap, ConfigFile, Prefix, SetValues, load_settings

if TYPE_CHECKING:
    from loopstream.config import Settings

_WHERE = "Where, and for whom"


def web(
    host: Annotated[
        str | None,
        typer.Option("--host", help="Address to listen on.", rich_help_panel=_WHERE),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", help="0: the system picks one.", rich_help_panel=_WHERE),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file", help="Holds what operators sign in with.", rich_help_panel=_WHERE
        ),
    ] = None,
    user_header: Annotated[
        str | None,
        typer.Option(
            "--user-header",
            help="A reverse proxy names its users in this header.",
            rich_help_panel=_WHERE,
        ),
    ] = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    config: ConfigFile = None,
    values: SetValues = None,
) -> None:
    """Serve the dashboard: live verdicts, each run's story, settings, and actions by operators.

    It reads the topics without a group and changes nothing; only an operator's release or abort is
    written, to the command topic. On the loopback everyone of this machine may read; any other
    address takes a token or a reverse proxy's header. Acting always takes the token.

    ```console
    $ loopstream web
    $ LOOPSTREAM_WEB__TOKEN=... loopstream web
    $ loopstream web --host 0.0.0.0 --token-file /run/secrets/token
    ```
    """
    settings = load_settings(
        bootstrap,
        prefix,
        config,
        values,
        web__host=host,
        web__port=port,
        web__token_file=token_file,
        web__user_header=user_header,
    ).settings
    serve_until_stopped(settings)


def serve_until_stopped(settings: Settings) -> None:
    """Serve until SIGTERM or Ctrl-C; the address goes to stdout."""
    import asyncio
    import logging
    import logging.config
    import signal

    from loopstream.config.logs import logging_config
    from loopstream.web.app import serve

    logging.config.dictConfig(logging_config(settings.log.level.upper(), settings.log.format))
    # Kafka's absence is told by our own log; the client repeats it many times a second.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)

    async def main() -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        await serve(settings, stop, print_line)

    if settings.web.token is None and settings.web.token_file is None:
        say("there is no token: nobody can act here (--token-file)")
    asyncio.run(main())
