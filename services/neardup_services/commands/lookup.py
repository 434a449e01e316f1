"""`neardup lookup URL`: what the offline pass knows of a url."""

from pathlib import Path

import click

from neardup.offline.queries.answers import Lookup
from neardup.offline.queries.queries import MOST_URLS
from neardup_services.commands.asking import echo_json, echo_table, json_option, known, queries_of, state_option


@click.command()
@click.argument("url")
@state_option
@click.option("--limit", default=MOST_URLS, show_default=True, type=click.IntRange(1), help="Most to tell of each.")
@json_option
def lookup(url: str, state: Path | None, limit: int, as_json: bool) -> None:
    """Tell the documents of URL, newest first, their clusters, and what contains or is contained in them.

    Answers come from the last offline pass (`neardup recluster`). Exit code 1 if the url is unknown.
    """
    found: Lookup = known(queries_of(state).lookup(url, limit), url)
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
