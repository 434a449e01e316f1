"""The stage of the canary service: plants near-copies of recent pages on the pages topic, to measure recall.

A canary is produced to the partition of its original page. By the time a featurizer reads the canary, it has already
processed the original, so a canary that is not found is a real miss. Owners keep canaries apart from pages (see
`stream/aggregator/canaries.py`). The service has no state: after a restart it plants other canaries.
"""

import random
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import xxhash

from neardup.errors import RecordError
from neardup.log import Output, Record
from neardup.messages.pages import CANARY_HEADER, canary_note, document_id, read_page, write_page
from neardup.monitoring.near_copy import NearCopies
from neardup.runtime.stage import Stage, Waves

_SLOTS: Final = 16
"""Number of chosen pages in memory. At a share of 1/1000, the copy of a page comes 16,000 pages later on average."""
_ORIGIN: Final = struct.Struct(">qqq")
_WORD: Final = 2.0**64


class CanaryStage(Stage):
    """The stage for one partition of the pages topic.

    A page is chosen by a hash of `seed`, partition and offset, so the choice does not depend on how the log is cut into
    batches. A chosen page moves into one of a few slots, and a copy of the slot's previous page is planted. The time
    between a page and its copy therefore varies.
    """

    name = "canary"

    def __init__(self, copies: NearCopies, *, topic: str, share: float, seed: int, most_bytes: int) -> None:
        """Plant copies of a `share` of the pages up to `most_bytes` bytes on `topic`."""
        self._copies = copies
        self._topic = topic
        self._share = share
        self._seed = seed
        self._most_bytes = most_bytes
        self._slots: dict[int, Record] = {}
        self._next = 0

    def open(self, directory: Path) -> int | None:
        """Load nothing: the stage has no state."""
        return None

    def process(self, records: Sequence[Record]) -> Waves:
        """Return one wave: canaries. Records that are not pages are ignored here; the featurizer rejects them."""
        planted = []
        for record in records:
            chance = xxhash.xxh3_64_intdigest(_ORIGIN.pack(self._seed, record.partition, record.offset))
            if chance / _WORD >= self._share or not self._is_usable(record):
                continue
            slot = chance % _SLOTS
            previous = self._slots.get(slot)
            self._slots[slot] = record
            if previous is not None:
                planted += self._canary_of(previous, random.Random(chance))  # noqa: S311
        self._next = records[-1].offset + 1
        return Waves([planted])

    def checkpoint(self) -> int:
        """Return the next offset. A restart loses the chosen pages, which only means fewer canaries."""
        return self._next

    def _is_usable(self, record: Record) -> bool:
        return 0 < len(record.value or b"") <= self._most_bytes and canary_note(record) is None

    def _canary_of(self, record: Record, draw: random.Random) -> list[Output]:
        try:
            page = read_page(record)
        except RecordError:
            return []
        copy = self._copies.of(page, draw)
        if copy is None:
            return []
        note = f"canary: {copy.relation} to {document_id(record)}, resemblance {copy.resemblance}"
        headers = ((CANARY_HEADER, note.encode()),)
        return [Output(self._topic, record.partition, page.url.encode(), write_page(copy.page), headers)]
