"""A crawler that sends pages at a steady rate, also while the broker is unavailable."""

import asyncio
import time
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice

from aiokafka import AIOKafkaProducer

from neardup.messages.pages import write_page
from neardup.messages.topics import Topics
from neardup.sample import sample_crawl
from neardup.settings import Settings
from neardup.types import Page

_PATIENCE_MS = 120_000
"""Maximum duration of an outage of the broker. A longer one fails the test."""
_MOST_PAGES = 10_000_000
_MEAN_BYTES = 8000
_LINGER_MS = 5
"""The default of Kafka's Java client. A request per page would cost the broker more than the page itself."""


def sampled(seed: int) -> Iterator[Page]:
    """Generate an endless sequence of sample crawls."""
    return (made.page for made in sample_crawl(_MOST_PAGES, seed=seed, mean_bytes=_MEAN_BYTES))


class SteadyLoad:
    """Sends pages until stopped. The order of all pages is the order of sending.

    Page number n goes to partition n modulo the number of partitions. If the pages are kept, its timestamp is later
    than that of page n - 1. Otherwise timestamps may be equal, because at more than 1000 pages per second they would
    run ahead of the clock. The producer is idempotent: after an outage no page is missing and none is there twice, so
    the offset determines the number of a page.
    """

    def __init__(self, settings: Settings, rate: float, pages: Iterator[Page], *, keep_pages: bool = True) -> None:
        self.pages: list[Page] = []
        """Pages sent so far, if they are kept."""
        self.sent_at = array("d")
        self._keep_pages = keep_pages
        self._settings, self._rate = settings, rate
        self._crawl = pages
        self._stopping = False

    async def run(self, most: int = _MOST_PAGES) -> None:
        """Send until `stop`, or until `most` pages are sent. Return when all of them are acknowledged."""
        producer = AIOKafkaProducer(
            bootstrap_servers=self._settings.broker,
            enable_idempotence=True,
            request_timeout_ms=_PATIENCE_MS,
            max_batch_size=1 << 20,
            linger_ms=_LINGER_MS,
        )
        await producer.start()
        try:
            started = time.monotonic()
            while not self._stopping and len(self.sent_at) < most:
                due = min(int((time.monotonic() - started) * self._rate) + 1, most)
                for page in islice(self._crawl, due - len(self.sent_at)):
                    await self._send(producer, page)
                await asyncio.sleep(1 / self._rate)
            await producer.flush()
        finally:
            await producer.stop()

    def stop(self) -> None:
        """Stop sending."""
        self._stopping = True

    def sent_before(self, moment: float) -> int:
        """Return the number of pages that were sent before a time."""
        return bisect_left(self.sent_at, moment)

    async def _send(self, producer: AIOKafkaProducer, page: Page) -> None:
        number = len(self.sent_at)
        apart = 0.001 if self._keep_pages else 0.0
        at = max(time.time(), self.sent_at[-1] + apart if self.sent_at else 0.0)
        await producer.send(
            Topics.under(self._settings.prefix).pages,
            write_page(page),
            partition=number % self._settings.page_partitions,
            timestamp_ms=int(at * 1000),
        )
        if self._keep_pages:
            self.pages.append(page)
        self.sent_at.append(at)
