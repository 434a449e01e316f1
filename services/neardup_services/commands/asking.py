"""What the commands that ask the offline pass have in common."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from neardup.offline.passes.recluster import RESULTS
from neardup.offline.queries.queries import Queries
from neardup.settings import Settings
from neardup.util.formatting import printable

state_option: Callable[[Any], Any] = click.option(
    "--state", type=click.Path(path_type=Path), help="Directory with the state; else as set (NEARDUP_STATE)."
)
json_option: Callable[[Any], Any] = click.option("--json", "as_json", is_flag=True, help="One JSON object.")


def queries_of(state: Path | None) -> Queries:
    """About the pass of a state directory."""
    settings = Settings.load()
    return Queries.of((state or settings.state) / RESULTS, settings)


def known(answer: Any, url: str) -> Any:
    """An answer about a url; without one, an error with exit code 1."""
    if answer is None:
        raise click.ClickException(f"no document has the url {url!r}: expected one exactly as it was crawled")
    return answer


def echo_json(answer: Any) -> None:
    """A value as one line."""
    click.echo(orjson.dumps(answer).decode())


def echo_table(title: str, heads: tuple[str, ...], rows: list[tuple[object, ...]]) -> None:
    """A table for people, with a line before it. Of foreign texts nothing is printed that a terminal would follow."""
    table = Table(box=None, pad_edge=False)
    for head, example in zip(heads, rows[0] if rows else heads, strict=True):
        table.add_column(head, justify="right" if isinstance(example, int | float) else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(_shown(value))) for value in row))
    click.echo(printable(title))
    Console(width=None if sys.stdout.isatty() else 200).print(table)


def _shown(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.4f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
