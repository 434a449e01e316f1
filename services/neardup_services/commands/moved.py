"""`neardup moved`: finds the URL where a page was last fetched."""

from pathlib import Path

import click

from neardup.offline.queries.answers import Moved
from neardup.util.formatting import printable
from neardup_services.commands._shared import echo_json, json_option, open_queries, require_known, state_option


@click.command()
@click.argument("url")
@state_option
@json_option
def moved(url: str, state: Path | None, as_json: bool) -> None:
    """Find the URL where a page was last fetched.

    Prints the other URL at which the page of URL was last fetched, and the relation between the two documents.

    Exit code 1: the URL is unknown.

    \b
    Example:
      neardup moved https://a.example/page
    """
    found: Moved = require_known(open_queries(state).moved(url), url)
    if as_json:
        echo_json(found)
    else:
        click.echo(printable(_line(found)))


def _line(found: Moved) -> str:
    last = f"last seen {found.fetched_at or 'at an unknown time'} as {found.document}"
    if found.found is None:
        return f"{found.url}: {last}, not found elsewhere"
    other = found.found
    relation = other.relation or "not near it, but in its cluster"
    where = f"{other.url} ({other.fetched_at or 'time unknown'}, {other.document}: {relation})"
    return f"{found.url}: {last}, {'and since at' if found.moved else 'and not since; before at'} {where}"
