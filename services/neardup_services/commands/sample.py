"""`neardup sample`: generates a crawl whose duplicates are known."""

import gzip
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import click

from neardup.sample.crawl import LEAST_MEAN_BYTES, MEAN_BYTES, sample_crawl
from neardup.sample.files import FORMATS, JSONL, write_sampled
from neardup.sample.truth import write_truth
from neardup_services.commands._shared import make_progress

_SHOWN_EVERY = 100


@click.command()
@click.option("--pages", default=10_000, show_default=True, type=click.IntRange(1), help="Number of pages.")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="Seed of the random choices.")
@click.option(
    "--out",
    required=True,
    metavar="FILE",
    help="File for the pages. A name that ends in .gz is compressed; - is standard output.",
)
@click.option("--truth", metavar="FILE", help="File for the true duplicates of each page, for `neardup score`.")
@click.option(
    "--format",
    "form",
    default=JSONL,
    show_default=True,
    type=click.Choice(FORMATS),
    help="Format of the file with the pages.",
)
@click.option(
    "--mean-bytes",
    default=MEAN_BYTES,
    show_default=True,
    type=click.IntRange(LEAST_MEAN_BYTES, 10**6),
    help="Approximate mean size of a page in bytes of HTML.",
)
def sample(pages: int, seed: int, out: str, truth: str | None, form: str, mean_bytes: int) -> None:
    """Generate a crawl whose duplicates are known.

    The crawl has originals, copies, edits, mirrors and recrawls in ten languages. The same options generate the same
    pages, and a larger crawl begins with the pages of a smaller one. Pages in old charsets keep their bytes in msgpack;
    in JSON lines they are converted to text.

    \b
    Example:
      neardup sample --pages 5000 --out pages.jsonl --truth truth.jsonl
    """
    with ExitStack() as opened:
        try:
            pages_file = opened.enter_context(_writer(out))
            truth_file = opened.enter_context(_writer(truth)) if truth is not None else None
        except OSError as error:
            raise click.ClickException(f"{error.filename}: cannot write: {error.strerror}") from error
        progress = opened.enter_context(make_progress())
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
        # Without name and time, the same pages produce the same file. Level 6 takes a third of the time of level 9.
        with gzip.GzipFile("", "wb", compresslevel=6, fileobj=plain, mtime=0) as packed:
            yield cast(BinaryIO, packed)
