"""`neardup similar`: finds the known documents most similar to a page."""

from pathlib import Path

import click

from neardup.offline.queries.queries import MOST_SIMILAR
from neardup_services.commands._shared import echo_json, echo_table, json_option, open_queries, read_page, state_option


@click.command()
@click.argument("file")
@state_option
@click.option(
    "--limit", default=MOST_SIMILAR, show_default=True, type=click.IntRange(1), help="Maximum number of documents."
)
@click.option("--charset", help="Charset as in the Content-Type header. Default: detected.")
@json_option
def similar(file: str, state: Path | None, limit: int, charset: str | None, as_json: bool) -> None:
    """Find the known documents most similar to a page.

    The page in FILE (- for standard input) need not have been crawled. Only one of several copies is listed;
    `neardup lookup` lists the other documents of its cluster. The columns "text in it" and "it in text" are the
    estimated shares of the text that the document contains, and of the document that the text contains.

    \b
    Example:
      neardup similar page.html --limit 5
    """
    found = open_queries(state).similar(read_page(file, charset), limit)
    if as_json:
        echo_json(found)
    elif found.skipped is not None:
        click.echo(f"{file}: cannot be compared: {found.skipped}")
    else:
        echo_table(
            f"{file}: {len(found.documents)} similar documents",
            ("url", "document", "relation", "resemblance", "text in it", "it in text", "cluster", "of"),
            [
                (d.url, d.document, d.relation, d.resemblance, d.text_in_document, d.document_in_text, d.cluster,
                 d.cluster_size)
                for d in found.documents
            ],
        )  # fmt: skip
