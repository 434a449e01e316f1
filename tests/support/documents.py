"""Documents, pages and messages that the tests of the stream share."""

import random
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from neardup.kernels.signatures import comparing
from neardup.log import Output, PlainRecord
from neardup.matching.found_by import FoundBy
from neardup.matching.match import Match
from neardup.messages.document_columns import DocumentColumns
from neardup.messages.pages import write_page
from neardup.messages.registrations import write_registrations
from neardup.messages.settled import Settled, read_batch
from neardup.runtime.stage import Waves
from neardup.signatures.checksums import CHECKSUM_BYTES, checksum_of_content, checksum_of_hashes
from neardup.signatures.sketch import mips_of, sample_of
from neardup.types import BatchId, Checksums, Document, DocumentId, Page, Relation
from tests.support.messages import decode

KAFKA_MESSAGE_BYTES = 1_048_576
M = 128
BATCH = BatchId(0, 0, 0)
LONG_URLS = ("u" * 8192, "\N{GRINNING FACE}" * 8192)
"""URLs of the maximum length: one in one-byte characters, one in four-byte characters."""

# Documents, built from their shingles


def shingles(seed: int, count: int) -> NDArray[np.uint64]:
    """Return a set of `count` random shingles."""
    return np.random.default_rng(seed).integers(0, 2**64, count, np.uint64)


def sketch_of(some: NDArray[np.uint64], m: int = M) -> NDArray[np.uint64]:
    """Return the packed sketch of a set of shingles."""
    sample = sample_of(some)
    packed: NDArray[np.uint64] = comparing.pack(sample.i, mips_of(some, m), sample.values)
    return packed


def document(
    offset: int,
    some: NDArray[np.uint64] | int,
    *,
    fingerprint: int = 0,
    timestamp: int | None = None,
    partition: int = 0,
    url: str | None = None,
    content: str | None = None,
    tokens: str | None = None,
    note: str | None = None,
) -> Document:
    """Return a document with these shingles. An integer instead of shingles is the seed of a set of 200.

    By default, checksums and URL differ from those of all other documents.
    """
    if isinstance(some, int):
        some = shingles(some, 200)
    return Document(
        id=DocumentId(offset if timestamp is None else timestamp, partition, offset),
        url=f"http://{partition}.example/{offset}" if url is None else url,
        fetched_at=None,
        fingerprint=fingerprint,
        checksums=Checksums(
            checksum_of_content((content or f"content {partition}:{offset}").encode()),
            checksum_of_content((tokens or f"tokens {partition}:{offset}").encode()),
            checksum_of_hashes(sample_of(some).values),
        ),
        size=100,
        sketch=sketch_of(some),
        note=note,
    )


def plain(each: Document) -> tuple[Any, ...]:
    """Return a document as a value that can be compared."""
    values = [getattr(each, name) for name in Document.__slots__]
    return tuple(value.tolist() if isinstance(value, np.ndarray) else value for value in values)


# Pages


def text_of(seed: int, count: int = 120) -> list[str]:
    """Return the words of a generated page."""
    return [f"word{number}" for number in random.Random(seed).choices(range(10_000), k=count)]


def page(offset: int, content: Sequence[str] | bytes | None, *, timestamp: int = 0, url: str = "") -> PlainRecord:
    """Return a record for the pages topic: a page with these words, or the given bytes as the value."""
    value: bytes | None
    if content is None or isinstance(content, bytes):
        value = content
    else:
        value = write_page(Page(url or f"http://example/{offset}", html=("<p>" + " ".join(content)).encode()))
    return PlainRecord("t.pages", 0, offset, timestamp or 1_000 + offset, None, value, ())


def records(values: Iterable[bytes | None], *, first: int = 0, timestamp: int = 5) -> list[PlainRecord]:
    """Return messages as the records that a stage reads."""
    return [PlainRecord("t", 0, offset, timestamp, None, value, ()) for offset, value in enumerate(values, first)]


def outputs_to(waves: Waves, topic: str) -> list[Output]:
    """Return the outputs of a stage to one topic, in order."""
    return [output for wave in waves.waves for output in wave if output.topic == topic]


def registrations_of(
    some: Sequence[Document], *, batch: BatchId = BATCH, expected: Sequence[int] = (0,), plan: str = "plan"
) -> list[bytes]:
    """Return messages that register these documents with one owner."""
    return list(write_registrations(batch, expected, DocumentColumns.from_documents(some), range(len(some)), plan))


def body_of(value: bytes | None, kind: str) -> dict[str, Any]:
    """Return the body of a message that must be of this kind."""
    return decode(value, kind)


# Strategies

int64 = st.integers(-(2**63), 2**63 - 1)
word = st.integers(0, 2**64 - 1)
utf8 = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
places = st.builds(DocumentId, int64, int64, int64)
batches = st.builds(BatchId, int64, int64, int64)
checksum = st.binary(min_size=CHECKSUM_BYTES, max_size=CHECKSUM_BYTES)


def sketches(m: int = M) -> st.SearchStrategy[NDArray[np.uint64]]:
    """Generate packed sketches with `m` MIPs values."""
    exponents, sample = st.integers(0, 63), hnp.arrays(np.uint64, st.integers(0, 9))
    return st.builds(comparing.pack, exponents, hnp.arrays(np.uint32, m), sample)


documents = st.builds(
    Document,
    id=places,
    url=utf8,
    fetched_at=st.none() | utf8,
    fingerprint=word,
    checksums=st.builds(Checksums, checksum, checksum, checksum),
    size=int64,
    sketch=sketches(),
    note=st.none() | utf8,
)
matches = st.builds(
    Match,
    id=places,
    url=utf8,
    relation=st.sampled_from(Relation),
    hamming=st.integers(0, 64),
    resemblance=st.floats(0, 1),
    containment=st.none() | st.floats(0, 1),
    found_by=st.integers(0, 2**200).map(FoundBy),
    group=places,
    group_url=utf8,
)

_scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary()
_dtypes = st.sampled_from([np.dtype(code) for code in ("u1", "u2", "u8", "i8", "f4", "f8")])
_shapes = st.tuples(st.integers(0, 3)) | st.tuples(st.integers(0, 3), st.sampled_from([1, 3, 3 * CHECKSUM_BYTES]))
_arrays = _dtypes.flatmap(lambda dtype: hnp.arrays(dtype, _shapes))
no_array = _scalars | st.lists(_scalars | _arrays, max_size=3) | st.dictionaries(st.text(), _scalars, max_size=3)
anything = _arrays | no_array
"""Values that a damaged message may contain instead of a column."""


def read_documents(value: bytes | None) -> list[Settled]:
    """Return the settled documents of a message as objects. Raises WireError."""
    batch = read_batch(value)
    return [Settled(document, match) for document, match in zip(batch.documents, batch.matches, strict=True)]
