"""Value types of neardup, in the order of the data flow: page, document, verdict.

They do no I/O and use no clock and no settings. Fingerprints, sketches, probes and answers have no class of their own,
because messages carry many of them as packed arrays.
"""

from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

AFTER_ALL: Final = 2**63 - 1
"""Timestamp of canaries, which places them after all pages. No other document has it."""


class DocumentId(NamedTuple):
    """The position of a page in the order of all pages, which also identifies it.

    The order is that of the tuples: by the timestamp of the record, then by partition and offset in the pages topic.
    Canaries, which are planted near-copies of pages, come after all pages. So a canary can be a duplicate of any page,
    but a page is never a duplicate of a canary.
    """

    timestamp: int
    partition: int
    offset: int

    @property
    def is_canary(self) -> bool:
        """True for a near-copy that was planted to measure recall."""
        return self.timestamp == AFTER_ALL

    def __str__(self) -> str:
        return f"{self.partition}:{self.offset}"

    @staticmethod
    def parse(name: str) -> tuple[int, int]:
        """Parse a name as `str` returns it, and return the partition and the offset.

        Raises ValueError for any other text.
        """
        partition, colon, offset = name.partition(":")
        if not (colon and partition.isdecimal() and offset.isdecimal()):
            raise ValueError(f"expected partition:offset, got {name!r}")
        return int(partition), int(offset)


@dataclass(frozen=True, slots=True)
class Page:
    """A page from the crawler. Exactly one of `html` and `text` is set."""

    url: str
    _: KW_ONLY
    html: bytes | None = None
    text: str | None = None
    fetched_at: str | None = None
    content_type: str | None = None
    charset: str | None = None
    crawl: str | None = None

    @property
    def content(self) -> bytes:
        """The bytes of the page, for checksums and sizes."""
        if self.html is not None:
            return self.html
        assert self.text is not None
        return self.text.encode()


class Kind(StrEnum):
    """The outcome of a verdict."""

    UNIQUE = "unique"
    DUPLICATE = "duplicate"
    SKIPPED = "skipped"


class Relation(StrEnum):
    """The relation of a duplicate to the earlier page, strongest first."""

    IDENTICAL = "identical"
    SAME_TEXT = "same-text"
    SAME_SHINGLES = "same-shingles"
    NEAR = "near"
    CONTAINED = "contained"


@dataclass(frozen=True, slots=True)
class Checksums:
    """Checksums of the content, of its tokens and of the shingles in its sketch (levels of identity by Broder)."""

    content: bytes
    tokens: bytes
    shingles: bytes

    def relation_to(self, other: "Checksums") -> Relation | None:
        """Return the strongest relation of identity between two documents, or None."""
        if self.content == other.content:
            return Relation.IDENTICAL
        if self.tokens == other.tokens:
            return Relation.SAME_TEXT
        if self.shingles == other.shingles:
            return Relation.SAME_SHINGLES
        return None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Document:
    """A page in canonical form, as its owner stores it. `note` is a remark for the verdict, such as truncation."""

    id: DocumentId
    url: str
    fetched_at: str | None
    fingerprint: int
    checksums: Checksums
    size: int
    sketch: "NDArray[np.uint64]"
    note: str | None = None


@dataclass(frozen=True, slots=True)
class SkippedPage:
    """A page without a fingerprint, with the reason."""

    id: DocumentId
    url: str
    fetched_at: str | None
    reason: str


class BatchId(NamedTuple):
    """A batch of pages that a featurizer processed together: a partition of the pages topic and a range of offsets."""

    partition: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class PageRef:
    """A reference to a page in a verdict."""

    url: str
    document: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A verdict on a page, identified by (document, revision). A higher revision replaces a lower one."""

    url: str
    document: str
    fetched_at: str | None
    verdict: Kind
    revision: int
    duplicate_of: PageRef | None = None
    relation: Relation | None = None
    same_url: bool = False
    hamming: int | None = None
    resemblance: float | None = None
    containment: float | None = None
    found_by: tuple[str, ...] = ()
    first_of_group: PageRef | None = None
    reason: str | None = None
    signature_version: str = ""
    latency_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A record that could not be processed, unchanged, with its origin and the reason."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    stage: str
    reason: str
    detail: str
