"""`neardup serve`: answers queries about the results of the offline pass over HTTP."""

import asyncio
from pathlib import Path
from typing import Final

import click

from neardup.settings import Settings
from neardup_services.commands._shared import open_queries, state_option

DEFAULT_PORT: Final = 6067


@click.command()
@state_option
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on. There is no authentication: every client that can reach it may send queries.",
)
@click.option(
    "--port",
    default=DEFAULT_PORT,
    show_default=True,
    type=click.IntRange(0, 65_535),
    help="Port to listen on; 0 selects a free one.",
)
def serve(state: Path | None, host: str, port: int) -> None:
    """Answer queries about the results over HTTP.

    Serves /lookup, /similar, /moved and /changes until Ctrl-C or SIGTERM; /openapi.json describes them. The server
    changes nothing, and uses the results of a new offline pass without a restart.

    \b
    Example:
      neardup serve --state state --port 6067
    """
    # Slow to import, and only needed here.
    from neardup_services.http.api import make_api
    from neardup_services.http.server import run_api

    app = make_api(open_queries(state), most_body_bytes=Settings.load().page_bytes)
    try:
        asyncio.run(run_api(app, host, port, started=lambda address: click.echo(f"listening on {address}")))
    except OSError as error:
        raise click.ClickException(f"{host}:{port}: cannot listen: {error.strerror}") from error
