"""`neardup forget` and `neardup expire`: orders to all owners of a running deployment."""

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
    """Forget every page of URLS: pages that come later are not compared with them, and the next offline pass leaves
    them out of its results.

    What the stream said stays said: its verdicts that point at a forgotten page are not revised.
    """
    asyncio.run(_send(Settings.load(), [Forget(url) for url in urls]))
    click.echo(f"{len(urls)} urls: the owners will forget them")


@click.command()
@click.option("--before", required=True, type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]), help="Time in UTC.")
def expire(before: datetime) -> None:
    """Forget every page that came before a time, in the stream and in the next offline pass.

    Shards keep fingerprints alone; they drop old ones by themselves when NEARDUP_TTL_HOURS is set.
    """
    moment = int(before.replace(tzinfo=UTC).timestamp() * 1000)
    asyncio.run(_send(Settings.load(), [Expire(moment)]))
    click.echo(f"the owners will forget what came before {before.isoformat()} UTC")


async def _send(settings: Settings, given: list[Forget | Expire]) -> None:
    inbox = Topics.under(settings.prefix, settings.generation).inbox
    async with KafkaLog(settings) as log:
        # As many as there are, whatever the settings of this shell say: every owner must hear it.
        owners = await log.partitions(inbox)
        await log.send([output for order in given for output in orders(order, inbox, owners)])
