"""`neardup produce`: sends the pages in files to the pages topic."""

import asyncio
import contextlib
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
from neardup.messages.pages import write_page
from neardup.messages.topics import Topics
from neardup.settings import Settings
from neardup_services.own_verdicts import OwnVerdicts

_CHUNK: Final = 200
_EXIT_REJECTED: Final = 3
_STALL_SECONDS: Final = 120.0


@click.command()
@click.argument("inputs", nargs=-1, required=True)
@click.option("--url-prefix", default=DEFAULT_PREFIX, show_default=True, help="Prefix of the urls of pages in folders.")
@click.option("--rate", type=click.FloatRange(0, min_open=True), help="Maximum number of pages per second.")
@click.option("--wait", is_flag=True, help="Wait for the verdicts on the sent pages, then print their counts.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=_STALL_SECONDS,
    show_default=True,
    help="Time in seconds without a new verdict after which `--wait` fails.",
)
def produce(inputs: tuple[str, ...], url_prefix: str, rate: float | None, wait: bool, timeout: float) -> None:
    """Send the pages in files to the pages topic.

    INPUTS are of the same kinds as for `neardup dedup`.

    Exit code 3: some items could not be used; they are listed on standard error.

    \b
    Example:
      neardup produce pages.jsonl --rate 500
    """
    sources = [open_input(name, url_prefix=url_prefix) for name in inputs]
    rejected = asyncio.run(_produce(Settings.load(), sources, rate, timeout if wait else None))
    if rejected:
        sys.exit(_EXIT_REJECTED)


async def _produce(settings: Settings, sources: list[Source], rate: float | None, patience: float | None) -> int:
    console = Console(stderr=True)
    async with contextlib.AsyncExitStack() as stack:
        log = await stack.enter_async_context(KafkaLog(settings))
        progress = stack.enter_context(Progress(console=console, disable=not console.is_terminal, transient=True))
        own = None if patience is None else await stack.enter_async_context(OwnVerdicts.reading(log, settings))
        sent, rejected = await _send(log, Topics.under(settings.prefix).pages, sources, rate, own, progress)
        click.echo(f"{sent:,} pages sent, {rejected:,} items not usable", err=True)
        if own is not None and patience is not None:
            task = progress.add_task("verdicts", total=sent)
            if not await own.wait(sent, patience, lambda judged: progress.update(task, completed=judged)):
                raise click.ClickException(
                    f"expected verdicts on {sent:,} pages, got {own.judged:,} and none for {patience:g} s: "
                    "check with `neardup status` that featurizer, shard and aggregator run"
                )
            click.echo(own.summary())
    return rejected


async def _send(
    log: KafkaLog, topic: str, sources: list[Source], rate: float | None, own: OwnVerdicts | None, progress: Progress
) -> tuple[int, int]:
    sizes = [source.bytes_total for source in sources]
    task = progress.add_task("pages", total=None if None in sizes else sum(size or 0 for size in sizes))
    headers = () if own is None else (own.header,)
    sent = rejected = 0
    at_once = _CHUNK if rate is None else max(1, min(_CHUNK, int(rate / 10)))
    await log.partitions(topic)
    started = time.monotonic()
    for source in sources:
        items = source.items()

        def next_items() -> list[Item]:
            return list(islice(items, at_once))  # noqa: B023

        while chunk := await asyncio.to_thread(next_items):
            pages = [item.page for item in chunk if item.page is not None]
            await log.send([Output(topic, None, page.url.encode(), write_page(page), headers) for page in pages])
            sent += len(pages)
            for item in chunk:
                if item.page is None:
                    rejected += 1
                    click.echo(f"{item.source}, item {item.number}: {item.rejected}", err=True)
            progress.update(task, completed=sum(each.bytes_read for each in sources))
            if rate is not None:
                await asyncio.sleep(max(0.0, sent / rate - (time.monotonic() - started)))
    return sent, rejected
