"""`neardup forget` and `neardup expire`: send orders to all owners of a running deployment."""

import asyncio
from datetime import UTC, datetime

import click

from neardup.log.kafka import KafkaLog
from neardup.messages.orders import Expire, Forget, orders
from neardup.messages.topics import Topics
from neardup.settings import Settings


@click.command()
@click.argument("urls", nargs=-1, required=True)
def forget(urls: tuple[str, ...]) -> None:
    """Forget every page of some URLs.

    Later pages are not compared with the pages of URLS, and the next offline pass omits them from its results. Earlier
    verdicts that point at a forgotten page are not revised.

    \b
    Example:
      neardup forget https://a.example/page
    """
    asyncio.run(_send(Settings.load(), [Forget(url) for url in urls]))
    click.echo(f"sent the orders to forget {len(urls)} URLs")


@click.command()
@click.option(
    "--before",
    required=True,
    type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]),
    help="Time of arrival in UTC. Pages that arrived earlier are forgotten.",
)
def expire(before: datetime) -> None:
    """Forget every page that arrived before a given time.

    Applies to the stream and to the next offline pass. Shards keep only fingerprints; they drop old ones by themselves
    if NEARDUP_TTL_HOURS is set.

    \b
    Example:
      neardup expire --before 2026-01-31
    """
    moment = int(before.replace(tzinfo=UTC).timestamp() * 1000)
    asyncio.run(_send(Settings.load(), [Expire(moment)]))
    click.echo(f"sent the order to forget pages that arrived before {before.isoformat()} UTC")


async def _send(settings: Settings, given: list[Forget | Expire]) -> None:
    inbox = Topics.under(settings.prefix, settings.generation).inbox
    async with KafkaLog(settings) as log:
        # Every owner must receive the order, even if NEARDUP_OWNERS differs between this process and the workers.
        owners = await log.partitions(inbox)
        await log.send([output for order in given for output in orders(order, inbox, owners)])
