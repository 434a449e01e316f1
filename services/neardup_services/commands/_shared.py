"""Options, tables and inputs that several commands share."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
import orjson
from rich.console import Console
from rich.progress import Progress, ProgressColumn
from rich.table import Table
from rich.text import Text

from neardup.settings import DEFAULT_PRESET, PRESETS, Settings
from neardup.types import Page
from neardup.util.formatting import printable

if TYPE_CHECKING:
    from neardup.offline.queries.queries import Queries

_Answer = TypeVar("_Answer")

_PLAIN_TEXT: Final = (".txt", ".text", ".md")

state_option: Callable[[Any], Any] = click.option(
    "--state", type=click.Path(path_type=Path), help="State directory to read. Default: NEARDUP_STATE."
)
json_option: Callable[[Any], Any] = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
preset_option: Callable[[Any], Any] = click.option(
    "--preset",
    type=click.Choice(list(PRESETS)),
    default=DEFAULT_PRESET,
    show_default=True,
    help="Named set of settings. Environment variables and the settings file take precedence over it.",
)


def open_queries(state: Path | None) -> "Queries":
    """Return the queries about the results in a state directory, or in that of the settings."""
    # Slow to import, and not needed by every command that uses this module.
    from neardup.offline.passes.recluster import RESULTS
    from neardup.offline.queries.queries import Queries

    settings = Settings.load()
    return Queries.of((state or settings.state) / RESULTS, settings)


def require_known(answer: _Answer | None, url: str) -> _Answer:
    """Return an answer about a URL, or exit with an error if it is None."""
    if answer is None:
        raise click.ClickException(f"no document has the URL {url!r}: expected a URL exactly as it was crawled")
    return answer


def read_page(name: str, charset: str | None = None) -> Page:
    """Return the page in a file, `-` for standard input. Names that end in .txt or .md are text, all others HTML."""
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise click.ClickException(f"{name}: expected a file, cannot read it: {error.strerror}") from error
    content_type = "text/plain" if name.lower().endswith(_PLAIN_TEXT) else None
    return Page(url=name, html=data, charset=charset, content_type=content_type)


def echo_json(answer: object) -> None:
    """Print a value as one line of JSON."""
    click.echo(orjson.dumps(answer).decode())


def echo_table(title: str, heads: tuple[str, ...], rows: list[tuple[object, ...]]) -> None:
    """Print a title and a table. Characters of crawled text that control a terminal are escaped."""
    table = Table(box=None, pad_edge=False)
    for head, example in zip(heads, rows[0] if rows else heads, strict=True):
        table.add_column(head, justify="right" if isinstance(example, int | float) else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(_format(value))) for value in row))
    click.echo(printable(title))
    output_console(200).print(table)


def make_table(*heads: str, left: int = 1, title: str | None = None) -> Table:
    """Return an empty table without borders, whose columns after the first `left` are numbers."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for number, head in enumerate(heads):
        table.add_column(head, justify="left" if number < left else "right")
    return table


def output_console(width: int = 160) -> Console:
    """Return a console on standard output. `width` is in characters and applies where there is no terminal."""
    return Console(width=None if sys.stdout.isatty() else width, highlight=False)


def make_progress(*columns: str | ProgressColumn) -> Progress:
    """Return a progress bar on standard error, which prints nothing where there is no terminal."""
    console = Console(stderr=True)
    return Progress(*columns, console=console, disable=not console.is_terminal, transient=True)


def _format(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.4f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
