"""Pages from files, for commands that take them."""

import sys
from pathlib import Path
from typing import Final

import click

from neardup.types import Page

_PLAIN: Final = (".txt", ".text", ".md")


def page_from(name: str, charset: str | None = None) -> Page:
    """The page in a file, `-` for standard input. Names that end in .txt or .md are text, all others HTML."""
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise click.ClickException(f"{name}: expected a file, cannot read it: {error.strerror}") from error
    content_type = "text/plain" if name.lower().endswith(_PLAIN) else None
    return Page(url=name, html=data, charset=charset, content_type=content_type)
