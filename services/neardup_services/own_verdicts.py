"""Verdicts on the pages of one producer, among those on all other pages."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Final, Self

from neardup.log import Log, Record
from neardup.messages import dead_letters
from neardup.messages.topics import Topics
from neardup.messages.verdicts import read_verdict
from neardup.settings import Settings
from neardup_services.topic_reader import read_records
from neardup_services.verdict_counts import VerdictCounts

PRODUCER_HEADER: Final = "neardup-producer"
"""Header of a page record that identifies the run of the producer. Services ignore it."""

_POLL_SECONDS: Final = 0.1


class OwnVerdicts:
    """The verdicts and dead letters on the pages that carry `header`.

    A page has no id before the broker acknowledges it, and a verdict does not carry the headers of its page. The
    pages topic is therefore read as well: the records with the header are the pages of this producer.
    """

    def __init__(self) -> None:
        self.header = (PRODUCER_HEADER, uuid.uuid4().hex.encode())
        self._documents: set[str] = set()
        self._dead: set[str] = set()
        self._judged: set[str] = set()
        self._counts = VerdictCounts()
        self._stop = asyncio.Event()
        self._readers: list[asyncio.Task[None]] = []

    @classmethod
    @contextlib.asynccontextmanager
    async def reading(cls, log: Log, settings: Settings) -> AsyncIterator[Self]:
        """Read the topics from now on, in the background, until the end of the context."""
        own, topics = cls(), Topics.under(settings.prefix)
        used = {topics.pages: own._page, topics.verdicts: own._verdict, topics.dead_letters: own._dead_letter}
        try:
            for topic, use in used.items():
                positioned = asyncio.Event()
                reader = asyncio.create_task(own._read(log, topic, settings.prefix, use, positioned))
                own._readers.append(reader)
                waiting = asyncio.create_task(positioned.wait())
                await asyncio.wait((reader, waiting), return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
                own._raise_errors()
            yield own
        finally:
            own._stop.set()
            await asyncio.gather(*own._readers, return_exceptions=True)

    async def wait(self, sent: int, patience: float, progress: Callable[[int], None]) -> bool:
        """Wait for a verdict or a dead letter on each of the `sent` pages; report the number so far to `progress`.

        Returns False if none arrives for `patience` seconds. Raises LogError.
        """
        clock = asyncio.get_running_loop().time
        before, since = -1, clock()
        while (judged := self.judged) < sent:
            self._raise_errors()
            progress(judged)
            if judged > before:
                before, since = judged, clock()
            elif clock() - since >= patience:
                return False
            await asyncio.sleep(_POLL_SECONDS)
        progress(sent)
        return True

    @property
    def judged(self) -> int:
        """The number of pages that have a verdict or a dead letter."""
        return len(self._judged)

    def summary(self) -> str:
        """Return one line: the number of documents per kind of verdict, and the dead letters if there are any."""
        dead = f"; {len(self._dead):,} dead letters" if self._dead else ""
        return self._counts.summary(self._documents) + dead

    async def _read(
        self, log: Log, topic: str, prefix: str, use: Callable[[Record], None], positioned: asyncio.Event
    ) -> None:
        async with aclosing(
            read_records(log, topic, prefix, self._stop, new=True, follow=True, positioned=positioned)
        ) as found:
            async for record in found:
                use(record)

    def _page(self, record: Record) -> None:
        if self.header in record.headers:
            document = f"{record.partition}:{record.offset}"
            self._documents.add(document)
            if document in self._counts.last:
                self._judged.add(document)

    def _verdict(self, record: Record) -> None:
        verdict = read_verdict(record.value or b"")
        self._counts.add(verdict, record.timestamp)
        if verdict.document in self._documents:
            self._judged.add(verdict.document)

    def _dead_letter(self, record: Record) -> None:
        letter = dead_letters.decode(record.value)
        if self.header in letter.headers:
            document = f"{letter.partition}:{letter.offset}"
            self._dead.add(document)
            self._judged.add(document)

    def _raise_errors(self) -> None:
        for reader in self._readers:
            if reader.done():
                reader.result()
