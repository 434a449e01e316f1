"""The stream as a library: pages in, verdicts out.

    with Deduplicator("state") as seen:
        verdict = seen.add(Page("https://a.example/", html=b"..."))

The embedded run has its own thread and event loop. This class gives synchronous access to it.
"""

import asyncio
import tempfile
import threading
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Self, TypeVar

from neardup.embedded.embedded import Embedded
from neardup.errors import InvalidPage
from neardup.messages import dead_letters
from neardup.messages.orders import Expire, Forget
from neardup.messages.verdicts import read_verdict
from neardup.settings import Settings
from neardup.types import DeadLetter, Page, Verdict

T = TypeVar("T")


class Deduplicator:
    """A deduplicator that compares each page with all pages before it.

    The state is kept in memory and in the directory `state`. Without a directory it is lost with `close`. Pages added
    since the last `save` are lost in a crash: add them again in the same order. Not thread-safe. Raises SettingsError
    or StateError when it cannot start.
    """

    def __init__(self, state: str | Path | None = None, settings: Settings | None = None) -> None:
        self._temporary = tempfile.TemporaryDirectory() if state is None else None
        directory = Path(self._temporary.name if self._temporary else str(state))
        self._verdicts: dict[str, Verdict] = {}
        self._letters: list[DeadLetter] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="neardup", daemon=True)
        self._thread.start()
        try:
            self._stream = self._wait(self._open(directory, settings or Settings.load()))
        except BaseException:
            self._end()
            raise

    def add(self, page: Page) -> Verdict:
        """Add a page and return its verdict. Raises InvalidPage if the page exceeds a limit."""
        return self.add_all([page])[0]

    def add_all(self, pages: Sequence[Page]) -> list[Verdict]:
        """Add several pages and return their verdicts in order. Much faster than adding them one by one."""
        first = self._stream.page_count
        self._wait(self._feed(pages))
        verdicts, letters = self._verdicts, self._letters
        self._verdicts, self._letters = {}, []
        if letters:
            page = pages[letters[0].offset - first]
            raise InvalidPage(f"{page.url}: {letters[0].detail}")
        return [verdicts[f"0:{number}"] for number in range(first, first + len(pages))]

    def forget(self, url: str) -> None:
        """Forget every page of a URL. Later pages are not compared with these pages, and an offline pass omits them."""
        self._wait(self._stream.send_order(Forget(url)))

    def expire(self, before: int) -> None:
        """Forget every page that was added before a time, in milliseconds since 1970."""
        self._wait(self._stream.send_order(Expire(before)))

    def save(self) -> None:
        """Make all pages added so far durable."""
        self._wait(self._stream.save())

    def close(self) -> None:
        """Save the state and stop. The object must not be used afterwards."""
        if self._thread.is_alive():
            try:
                self._wait(self._finish())
            finally:
                self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def _open(self, directory: Path, settings: Settings) -> Embedded:
        stream = Embedded(directory, settings, on_verdict=self._on_verdict, on_dead_letter=self._on_dead_letter)
        return await stream.__aenter__()

    async def _feed(self, pages: Sequence[Page]) -> None:
        await self._stream.feed(pages)
        await self._stream.drain()

    async def _finish(self) -> None:
        try:
            await self._stream.finish()
        finally:
            await self._stream.__aexit__(None, None, None)

    def _on_verdict(self, value: bytes) -> None:
        verdict = read_verdict(value)
        self._verdicts[verdict.document] = verdict

    def _on_dead_letter(self, value: bytes) -> None:
        self._letters.append(dead_letters.decode(value))

    def _wait(self, work: Coroutine[object, None, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        if self._temporary is not None:
            self._temporary.cleanup()
