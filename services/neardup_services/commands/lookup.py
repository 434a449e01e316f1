"""`neardup lookup`: shows the documents and the clusters of a URL."""

from pathlib import Path

import click

from neardup.offline.queries.answers import Lookup
from neardup.offline.queries.queries import MOST_URLS
from neardup_services.commands._shared import (
    echo_json,
    echo_table,
    json_option,
    open_queries,
    require_known,
    state_option,
)


@click.command()
@click.argument("url")
@state_option
@click.option(
    "--limit", default=MOST_URLS, show_default=True, type=click.IntRange(1), help="Maximum length of each list."
)
@json_option
def lookup(url: str, state: Path | None, limit: int, as_json: bool) -> None:
    """Show the documents and the clusters of a URL.

    The newest document comes first. Pages that contain a document or are contained in it are listed, too. The results
    are those of the last offline pass (`neardup recluster`).

    Exit code 1: the URL is unknown.

    \b
    Example:
      neardup lookup https://a.example/page
    """
    found: Lookup = require_known(open_queries(state).lookup(url, limit), url)
    if as_json:
        echo_json(found)
    else:
        _print(found)


def _print(found: Lookup) -> None:
    echo_table(
        found.url,
        ("document", "fetched at", "bytes", "cluster", "relation to its first", "resemblance"),
        [(d.document, d.fetched_at, d.size, d.cluster, d.relation, d.resemblance) for d in found.documents],
    )
    for cluster in found.clusters:
        echo_table(
            f"cluster {cluster.name}: {cluster.size} documents, represented by {cluster.representative.url}",
            ("url", "document", "fetched at", "bytes", "relation to its first", "resemblance"),
            [(m.url, m.document, m.fetched_at, m.size, m.relation, m.resemblance) for m in cluster.urls],
        )
    for title, held in (("contained in", found.contained_in), ("contains", found.contains)):
        if held:
            echo_table(title, ("url", "document", "containment"), [(h.url, h.document, h.containment) for h in held])
