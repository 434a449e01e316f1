"""The featurizer: pages in, documents out to their owners. Keeps no state."""

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

from neardup.log import Output, Record
from neardup.page import document_id, read_page
from neardup.registrations import CHECKSUM_BYTES, owner_of, write_registrations
from neardup.stage import Stage, Waves, decoded
from neardup.types import Document, Page


class Featurizer(Stage):
    """Turns pages into documents and registers each with its owner."""

    name = "featurizer"

    def __init__(self, *, inbox: str, owners: int) -> None:
        self._inbox = inbox
        self._owners = owners
        self._next = 0

    def open(self, directory: Path) -> int | None:
        """Nothing to load."""
        return None

    def process(self, records: Sequence[Record]) -> Waves:
        """One wave: registrations, grouped by owner."""
        pages, rejected = decoded(records, read_page)
        by_owner: dict[int, list[Document]] = {}
        for record, page in pages:
            document = _document(record, page)
            by_owner.setdefault(owner_of(document.checksum, self._owners), []).append(document)
        wave = [
            Output(self._inbox, owner, None, message)
            for owner, documents in sorted(by_owner.items())
            for message in write_registrations(documents)
        ]
        self._next = records[-1].offset + 1
        return Waves([wave], rejected)

    def checkpoint(self) -> int:
        """Everything processed is safe: there is nothing to save."""
        return self._next


def _document(record: Record, page: Page) -> Document:
    content = page.content
    checksum = blake2b(content, digest_size=CHECKSUM_BYTES).digest()
    return Document(document_id(record), page.url, page.fetched_at, checksum, len(content))
