"""`neardup changes`: shows how pages change from one crawl to the next."""

from pathlib import Path

import click

from neardup.offline.queries.changes import TENTHS, ChangeSummary, History
from neardup_services.commands._shared import (
    echo_json,
    echo_table,
    json_option,
    open_queries,
    require_known,
    state_option,
)


@click.command()
@click.argument("url", required=False)
@state_option
@json_option
def changes(url: str | None, state: Path | None, as_json: bool) -> None:
    """Show how pages change from one crawl to the next.

    With URL, lists the changes of its page. Without URL, prints a summary of all pages that were crawled several times.

    Exit code 1: the URL is unknown.

    \b
    Example:
      neardup changes https://a.example/page
    """
    queries = open_queries(state)
    found: History | ChangeSummary = queries.changes() if url is None else require_known(queries.history(url), url)
    if as_json:
        echo_json(found)
    elif isinstance(found, History):
        echo_table(
            found.url,
            ("document", "fetched at", "bytes", "change", "resemblance", "cluster"),
            [(v.document, v.fetched_at, v.size, v.change, v.resemblance, v.cluster) for v in found.versions],
        )
    else:
        _print(found)


def _print(summary: ChangeSummary) -> None:
    click.echo(f"{summary.urls:,} urls with several documents, {summary.pairs:,} pairs of successive documents:")
    echo_table(
        "",
        ("change", "pairs", "share"),
        [(name, count, count / max(summary.pairs, 1)) for name, count in summary.by_change.items()],
    )
    echo_table(
        "",
        ("resemblance", "pairs"),
        [(f"{n / TENTHS:.1f} to {(n + 1) / TENTHS:.1f}", count) for n, count in enumerate(summary.by_resemblance)],
    )
    if summary.hosts:
        echo_table(
            "",
            ("host", "urls", "documents", "changes of the text"),
            [(host.name, host.urls, host.versions, host.changes) for host in summary.hosts],
        )
