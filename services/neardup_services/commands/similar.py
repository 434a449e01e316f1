"""`neardup similar FILE`: the known documents most like a page."""

from pathlib import Path

import click

from neardup.offline.queries.queries import MOST_SIMILAR
from neardup_services.commands.asking import echo_json, echo_table, json_option, queries_of, state_option
from neardup_services.commands.files import page_from


@click.command()
@click.argument("file")
@state_option
@click.option(
    "--limit", default=MOST_SIMILAR, show_default=True, type=click.IntRange(1), help="Most documents to tell."
)
@click.option("--charset", help="As the server would say it; otherwise it is detected.")
@json_option
def similar(file: str, state: Path | None, limit: int, charset: str | None, as_json: bool) -> None:
    """Tell the documents most like the page in FILE (- for standard input), which need not be known.

    Of copies one is told; its cluster has the others (`neardup lookup`). Shares of the document in the text, and the
    other way round, are estimated from the documents' sketches and the whole text.
    """
    found = queries_of(state).similar(page_from(file, charset), limit)
    if as_json:
        echo_json(found)
    elif found.skipped is not None:
        click.echo(f"{file}: cannot be compared: {found.skipped}")
    else:
        echo_table(
            f"{file}: {len(found.documents)} documents are like it",
            ("url", "document", "relation", "resemblance", "text in it", "it in text", "cluster", "of"),
            [
                (d.url, d.document, d.relation, d.resemblance, d.text_in_document, d.document_in_text, d.cluster,
                 d.cluster_size)
                for d in found.documents
            ],
        )  # fmt: skip
