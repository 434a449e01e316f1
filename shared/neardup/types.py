"""The words of neardup, in the order the data flows: page, document, verdict.

Everything here is a plain value: no I/O, no clock, no settings. A fingerprint, a sketch, a probe and an
answer travel as packed arrays, many to a message, and so have no class of their own.
"""

from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

AFTER_ALL: Final = 2**63 - 1
"""The timestamp of canaries, and of nothing else."""


class DocumentId(NamedTuple):
    """The position of a page in the order of all pages, which also identifies it.

    Tuples compare field by field, and that comparison *is* the order: by the record's timestamp, then by
    partition and offset of the pages topic. A canary, a planted near-copy of a page, stands after all pages: it may
    turn out to duplicate any of them, and none of them it.
    """

    timestamp: int
    partition: int
    offset: int

    @property
    def is_canary(self) -> bool:
        """True for the planted near-copies that measure recall."""
        return self.timestamp == AFTER_ALL

    def __str__(self) -> str:
        return f"{self.partition}:{self.offset}"

    @staticmethod
    def parse(name: str) -> tuple[int, int]:
        """Return the partition and the offset of the document with this name, which is what `str` returns.

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
        """The fetched bytes, for checksums and sizes."""
        if self.html is not None:
            return self.html
        assert self.text is not None
        return self.text.encode()


class Kind(StrEnum):
    """The kind of a verdict."""

    UNIQUE = "unique"
    DUPLICATE = "duplicate"
    SKIPPED = "skipped"


class Relation(StrEnum):
    """The relation of a duplicate to the page that it duplicates, strongest first."""

    IDENTICAL = "identical"
    SAME_TEXT = "same-text"
    SAME_SHINGLES = "same-shingles"
    NEAR = "near"
    CONTAINED = "contained"


@dataclass(frozen=True, slots=True)
class Checksums:
    """Checksums on Broder's three levels of identity: the raw content, its tokens, and the shingles in its sketch."""

    content: bytes
    tokens: bytes
    shingles: bytes

    def relation_to(self, other: "Checksums") -> Relation | None:
        """Return the strongest level on which two documents are equal, or None."""
        if self.content == other.content:
            return Relation.IDENTICAL
        if self.tokens == other.tokens:
            return Relation.SAME_TEXT
        if self.shingles == other.shingles:
            return Relation.SAME_SHINGLES
        return None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Document:
    """A page in canonical form, as its owner stores it. `note` is a remark for its verdict, such as limits."""

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
    """A page without a fingerprint, and the reason."""

    id: DocumentId
    url: str
    fetched_at: str | None
    reason: str


class BatchId(NamedTuple):
    """The pages of one featurizer batch: a partition of the pages topic, and the first and the last offset."""

    partition: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class PageRef:
    """A reference from a verdict to another page."""

    url: str
    document: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A decision on a page, identified by document and revision. A higher revision replaces a lower one."""

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
    """A record that could not be processed, with the stage and the reason."""

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
