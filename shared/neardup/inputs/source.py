"""The interface of inputs: a source of items, each a page or the reason for its rejection."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from neardup.types import Page

MAX_ITEM_BYTES: Final = 64 * 2**20
"""Maximum size of one line, record or file in bytes. Larger items are rejected unread; pages have a few MB at most."""


@dataclass(frozen=True, slots=True)
class Item:
    """A page or the reason for its rejection. (`source`, `number`) identifies the item in every run."""

    source: str
    number: int
    page: Page | None = None
    rejected: str | None = None


class Source(ABC):
    """One input.

    `name` is the argument that named the input. `bytes_total` is the size of the input, None if unknown. `bytes_read`
    is the approximate number of bytes read so far, for a progress bar.
    """

    name: str
    bytes_total: int | None
    bytes_read: int

    @abstractmethod
    def items(self, after: int = -1) -> Iterator[Item]:
        """Yield the items with a number above `after`, in ascending order. May be called once.

        Blocks while reading. Bad input never raises an error: an unusable page becomes a rejected item, and if reading
        cannot continue, the last item is a rejected item with the reason. Memory is bounded by MAX_ITEM_BYTES, whatever
        the size of the input.
        """


def unreadable_rest(source: str, number: int, reason: object) -> Item:
    """Return the last item of a source that cannot be read further."""
    return Item(source, number, rejected=f"{reason}; the rest of {source} is not read")
