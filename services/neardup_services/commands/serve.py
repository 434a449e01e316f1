"""`neardup serve`: questions to the offline pass over HTTP."""

import asyncio
from pathlib import Path
from typing import Final

import click

from neardup.settings import Settings
from neardup_services.commands.asking import queries_of, state_option

DEFAULT_PORT: Final = 6067


@click.command()
@state_option
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on: whoever reaches it may ask."
)
@click.option(
    "--port", default=DEFAULT_PORT, show_default=True, type=click.IntRange(0, 65_535), help="Port; 0 takes a free one."
)
def serve(state: Path | None, host: str, port: int) -> None:
    """Answer questions over HTTP until Ctrl-C or SIGTERM: /lookup, /similar, /moved, /changes; see /openapi.json.

    Only reads. A new offline pass is noticed without a restart.
    """
    # Slow to import, and only needed here.
    from neardup_services.http.api import make_api
    from neardup_services.http.server import run_api

    app = make_api(queries_of(state), most_body_bytes=Settings.load().page_bytes)
    try:
        asyncio.run(run_api(app, host, port, started=lambda address: click.echo(f"listening on {address}")))
    except OSError as error:
        raise click.ClickException(f"{host}:{port}: cannot listen: {error.strerror}") from error
