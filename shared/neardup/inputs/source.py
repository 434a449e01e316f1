"""What every input is: a source of items, each a page or a reason why it is none."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from neardup.types import Page

MAX_ITEM_BYTES: Final = 64 * 2**20
"""Of one line, record or file. What is larger is rejected unread: a page may have a few MB."""


@dataclass(frozen=True, slots=True)
class Item:
    """A page, or the reason why there is none. (`source`, `number`) names it, today and in the next run."""

    source: str
    number: int
    page: Page | None = None
    rejected: str | None = None


class Source(ABC):
    """One input.

    `name` is as it was given. `bytes_total` is the size of the input, None if it is not known; `bytes_read` how much
    of it was read until now, which is what a progress bar wants and no more exact than that.
    """

    name: str
    bytes_total: int | None
    bytes_read: int

    @abstractmethod
    def items(self, after: int = -1) -> Iterator[Item]:
        """The items in order, with rising numbers; only those with a number above `after`. May be called once.

        Blocks on reading. Whatever is in the input, nothing is raised: an item that cannot be used is a rejected
        item, and where reading cannot go on behind it, the rejected item is the last one and says so. Memory is
        bounded by MAX_ITEM_BYTES, not by the input.
        """


def unreadable_rest(source: str, number: int, reason: object) -> Item:
    """The last item of a source that cannot be read on."""
    return Item(source, number, rejected=f"{reason}; the rest of {source} is not read")
