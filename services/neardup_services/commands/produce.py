"""`neardup produce`: pages from files to the pages topic."""

import asyncio
import sys
import time
from itertools import islice
from typing import Final

import click
from rich.console import Console
from rich.progress import Progress

from neardup.inputs import Item, Source, open_input
from neardup.inputs.folder import DEFAULT_PREFIX
from neardup.log import Output
from neardup.log.kafka import KafkaLog
from neardup.page import write_page
from neardup.settings import Settings
from neardup.topics import Topics

_CHUNK: Final = 200
_EXIT_REJECTED: Final = 3


@click.command()
@click.argument("inputs", nargs=-1, required=True)
@click.option("--url-prefix", default=DEFAULT_PREFIX, show_default=True, help="Of the urls of pages from folders.")
@click.option("--rate", type=click.FloatRange(0, min_open=True), help="Most pages a second; else as many as can be.")
def produce(inputs: tuple[str, ...], url_prefix: str, rate: float | None) -> None:
    """Send the pages of INPUTS to the pages topic: the same kinds of input as `neardup dedup`.

    Exit code 3 if some items could not be used; they are listed on standard error.
    """
    sources = [open_input(name, url_prefix=url_prefix) for name in inputs]
    sent, rejected = asyncio.run(_produce(Settings.load(), sources, rate))
    click.echo(f"{sent:,} pages sent, {rejected:,} items not usable", err=True)
    if rejected:
        sys.exit(_EXIT_REJECTED)


async def _produce(settings: Settings, sources: list[Source], rate: float | None) -> tuple[int, int]:
    topic = Topics.under(settings.prefix).pages
    sizes = [source.bytes_total for source in sources]
    total = None if None in sizes else sum(size or 0 for size in sizes)
    sent = rejected = 0
    at_once = _CHUNK if rate is None else max(1, min(_CHUNK, int(rate / 10)))
    console = Console(stderr=True)
    async with KafkaLog(settings) as log:
        await log.partitions(topic)
        started = time.monotonic()
        with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
            task = progress.add_task("pages", total=total)
            for source in sources:
                items = source.items()

                def next_items() -> list[Item]:
                    return list(islice(items, at_once))  # noqa: B023

                while chunk := await asyncio.to_thread(next_items):
                    pages = [item.page for item in chunk if item.page is not None]
                    await log.send([Output(topic, None, page.url.encode(), write_page(page)) for page in pages])
                    sent += len(pages)
                    for item in chunk:
                        if item.page is None:
                            rejected += 1
                            click.echo(f"{item.source}, item {item.number}: {item.rejected}", err=True)
                    progress.update(task, completed=sum(each.bytes_read for each in sources))
                    if rate is not None:
                        await asyncio.sleep(max(0.0, sent / rate - (time.monotonic() - started)))
    return sent, rejected
