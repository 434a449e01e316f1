"""`neardup sample`: a made crawl with known truth, to a file or a pipe."""

import gzip
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import click
from rich.console import Console
from rich.progress import Progress

from neardup.sample.crawl import LEAST_MEAN_BYTES, MEAN_BYTES, sample_crawl
from neardup.sample.files import FORMATS, JSONL, write_sampled
from neardup.sample.truth import write_truth

_SHOWN_EVERY = 100


@click.command()
@click.option("--pages", default=10_000, show_default=True, type=click.IntRange(1), help="how many to make")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="another seed, another crawl")
@click.option("--out", required=True, metavar="FILE", help="where to; .gz is compressed, - is standard output")
@click.option("--truth", metavar="FILE", help="where to write what is true of each page, for `neardup score`")
@click.option("--format", "form", default=JSONL, show_default=True, type=click.Choice(FORMATS), help="of the pages")
@click.option(
    "--mean-bytes",
    default=MEAN_BYTES,
    show_default=True,
    type=click.IntRange(LEAST_MEAN_BYTES, 10**6),
    help="of HTML, about",
)
def sample(pages: int, seed: int, out: str, truth: str | None, form: str, mean_bytes: int) -> None:
    """Make a crawl with known truth: originals, copies, edits, mirrors, recrawls, in ten languages.

    The same options make the same pages; with more pages, it begins with the same ones. msgpack keeps the bytes of
    pages in old charsets, JSON lines have them as text.
    """
    with ExitStack() as opened:
        try:
            pages_file = opened.enter_context(_writer(out))
            truth_file = opened.enter_context(_writer(truth)) if truth is not None else None
        except OSError as error:
            raise click.ClickException(f"{error.filename}: cannot write: {error.strerror}") from error
        console = Console(stderr=True)
        progress = opened.enter_context(Progress(console=console, disable=not console.is_terminal, transient=True))
        task = progress.add_task("pages", total=pages)
        for number, made in enumerate(sample_crawl(pages, seed, mean_bytes), 1):
            pages_file.write(write_sampled(made.page, form))
            if truth_file is not None:
                truth_file.write(write_truth(made.truth))
            if number % _SHOWN_EVERY == 0:
                progress.update(task, completed=number)


@contextmanager
def _writer(name: str) -> Iterator[BinaryIO]:
    if name == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with Path(name).open("wb") as plain:
        if not name.endswith(".gz"):
            yield plain
            return
        # No name and time in it: the same pages make the same file. Level 6 is a third of the time of 9.
        with gzip.GzipFile("", "wb", compresslevel=6, fileobj=plain, mtime=0) as packed:
            yield cast(BinaryIO, packed)
