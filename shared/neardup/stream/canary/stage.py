"""The canary service: plants near-copies of recent pages among the pages, to see whether the stream finds them.

A canary goes to the partition of the page it was made of, behind it: so whoever reads the partition in order has
registered the page and probed for it before, and a canary that is not found was missed and did not come too early.
What becomes of canaries is in `stream/aggregator/canaries.py`. This service keeps nothing: one that starts anew plants
others.
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

_PLACES: Final = 16
"""Chosen pages that wait to be planted. With one in a thousand chosen, a page waits for 16,000 others on average."""
_PLACE: Final = struct.Struct(">qqq")
_WORD: Final = 2.0**64


class CanaryStage(Stage):
    """One partition of the pages topic.

    A page is chosen by a hash of `seed` and its place, so the same pages are chosen however the log is cut. A chosen
    page takes one of a few places, and the one that stood there is planted: near-copies come after pages of all ages.
    """

    name = "canary"

    def __init__(self, copies: NearCopies, *, topic: str, share: float, seed: int, most_bytes: int) -> None:
        """Of a `share` of the pages of at most so many bytes, copies go to `topic`."""
        self._copies = copies
        self._topic = topic
        self._share = share
        self._seed = seed
        self._most_bytes = most_bytes
        self._waiting: dict[int, Record] = {}
        self._next = 0

    def open(self, directory: Path) -> int | None:
        """Nothing to load."""
        return None

    def process(self, records: Sequence[Record]) -> Waves:
        """One wave: canaries. What is no page is left to the featurizer to refuse."""
        planted = []
        for record in records:
            chance = xxhash.xxh3_64_intdigest(_PLACE.pack(self._seed, record.partition, record.offset))
            if chance / _WORD >= self._share or not self._is_usable(record):
                continue
            place = chance % _PLACES
            before = self._waiting.get(place)
            self._waiting[place] = record
            if before is not None:
                planted += self._planted(before, random.Random(chance))  # noqa: S311
        self._next = records[-1].offset + 1
        return Waves([planted])

    def checkpoint(self) -> int:
        """Pages that wait are forgotten by a restart: nobody counts on them."""
        return self._next

    def _is_usable(self, record: Record) -> bool:
        return 0 < len(record.value or b"") <= self._most_bytes and canary_note(record) is None

    def _planted(self, record: Record, draw: random.Random) -> list[Output]:
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
