"""What the commands that ask the offline pass have in common."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click
import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from neardup.offline.queries import Queries
from neardup.settings import Settings

RESULTS: Final = "clusters"
"""Folder of the state directory where the pass leaves its results."""

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
    """A table for people. Texts are shown as they are but for control characters, which a terminal would follow."""
    table = Table(
        *heads, box=None, pad_edge=False, title=Text(printable(title)), title_justify="left", title_style="bold"
    )
    for row in rows:
        table.add_row(*(Text(printable(_shown(value))) for value in row))
    Console(width=None if sys.stdout.isatty() else 200).print(table)


def printable(text: str) -> str:
    """With escapes in place of what is not to be printed."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def _shown(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.4f}" if isinstance(value, float) else str(value)
