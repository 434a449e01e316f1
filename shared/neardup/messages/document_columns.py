"""Documents as columns, the form that they have between processes, in messages and in the corpus."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any, Final, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from neardup.errors import Corrupt
from neardup.signatures.checksums import CHECKSUM_BYTES
from neardup.signatures.packed_sketch import are_packed
from neardup.types import Checksums, Document, DocumentId

T = TypeVar("T")

BATCH_BYTES: Final = 512 * 1024
"""A message ends when its documents exceed this size in bytes."""
CHECKSUM_LEVELS: Final = 3
"""Checksums per document, in the order of the fields of `Checksums`."""

_CONTENT_END: Final = CHECKSUM_BYTES
_TOKENS_END: Final = 2 * CHECKSUM_BYTES
_SHINGLES_END: Final = 3 * CHECKSUM_BYTES
_NONE: Final = type(None)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DocumentColumns:
    """Documents as columns, one row per document.

    The columns have the same names in messages. `from_body` validates; every other constructor trusts its arguments.
    """

    id: NDArray[np.int64]
    """(n, 3): timestamp, partition and offset."""
    url: list[str]
    fetched_at: list[str | None]
    fingerprint: NDArray[np.uint64]
    checksums: NDArray[np.uint8]
    """(n, 3 levels of CHECKSUM_BYTES bytes)."""
    size: NDArray[np.int64]
    """Size of the page in bytes."""
    sketch: NDArray[np.uint64]
    """The packed sketches of all documents, one after the other."""
    words: NDArray[np.int64]
    """Length of each sketch in words; 0 for a document without a sketch."""
    note: list[str | None]

    @classmethod
    def from_documents(
        cls, documents: Sequence[Document], sketches: Sequence[NDArray[np.uint64]] | None = None
    ) -> Self:
        """Build the columns of documents. `sketches` replaces their own sketches."""
        if sketches is None:
            sketches = [each.sketch for each in documents]
        return cls._packed(
            ids=[each.id for each in documents],
            urls=[each.url for each in documents],
            times=[each.fetched_at for each in documents],
            fingerprints=[each.fingerprint for each in documents],
            checksums=[each.checksums for each in documents],
            sizes=[each.size for each in documents],
            sketches=sketches,
            notes=[each.note for each in documents],
        )

    @classmethod
    def from_body(cls, body: dict[str, Any], mips: int | None) -> Self:
        """Read the columns from the body of a message, which may have other fields as well. Raises Corrupt.

        Every document must have a sketch with `mips` MIPs values. If `mips` is None, any sketch or none is accepted.
        """
        try:
            columns = cls(**{name: body[name] for name in _NAMES})
            columns._check()
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise Corrupt(f"expected the columns of documents, got {sorted(body)}: {error!r}") from error
        if mips is not None and not are_packed(columns.sketch, columns.words, mips):
            raise Corrupt(f"expected a packed sketch with {mips} MIPs values for every document, got another sketch")
        return columns

    @classmethod
    def concatenate(cls, parts: "Sequence[DocumentColumns]") -> "DocumentColumns":
        """Join one or more parts, in order. A single part is not copied."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            id=np.concatenate([part.id for part in parts]),
            url=[*chain.from_iterable(part.url for part in parts)],
            fetched_at=[*chain.from_iterable(part.fetched_at for part in parts)],
            fingerprint=np.concatenate([part.fingerprint for part in parts]),
            checksums=np.concatenate([part.checksums for part in parts]),
            size=np.concatenate([part.size for part in parts]),
            sketch=np.concatenate([part.sketch for part in parts]),
            words=np.concatenate([part.words for part in parts]),
            note=[*chain.from_iterable(part.note for part in parts)],
        )

    def __len__(self) -> int:
        return len(self.url)

    def __iter__(self) -> Iterator[Document]:
        """Yield the documents, each with a sketch of its own."""
        checksums, sketches = self.checksums.tobytes(), self.sketch
        start = at = 0
        for place, url, fetched_at, fingerprint, size, count, note in zip(
            self.id.tolist(),
            self.url,
            self.fetched_at,
            self.fingerprint.tolist(),
            self.size.tolist(),
            self.words.tolist(),
            self.note,
            strict=True,
        ):
            content, tokens, shingles = start + _CONTENT_END, start + _TOKENS_END, start + _SHINGLES_END
            yield Document(
                id=DocumentId(*place),
                url=url,
                fetched_at=fetched_at,
                fingerprint=fingerprint,
                checksums=Checksums(checksums[start:content], checksums[content:tokens], checksums[tokens:shingles]),
                size=size,
                # Copied, because a view would keep the whole message in memory as long as any of its documents.
                sketch=sketches[at : at + count].copy(),
                note=note,
            )
            start, at = shingles, at + count

    @property
    def sketch_ends(self) -> NDArray[np.int64]:
        """The end of each document's sketch in `sketch`."""
        return np.cumsum(self.words)

    def checksum(self, level: int) -> NDArray[np.uint8]:
        """Return one level of the checksums, as (n, CHECKSUM_BYTES): 0 content, 1 tokens, 2 shingles."""
        return self.checksums[:, level * CHECKSUM_BYTES : (level + 1) * CHECKSUM_BYTES]

    def to_body(self) -> dict[str, Any]:
        """Return the columns as fields of a message."""
        return {name: getattr(self, name) for name in _NAMES}

    def select(self, rows: Sequence[int]) -> "DocumentColumns":
        """Return one or more rows, in the given order. Arrays are not copied if `rows` is a range with step 1."""
        ends = self.sketch_ends
        starts = ends - self.words
        if isinstance(rows, range) and rows.step == 1:
            some = slice(rows[0], rows[-1] + 1)
            return DocumentColumns(
                id=self.id[some],
                url=self.url[some],
                fetched_at=self.fetched_at[some],
                fingerprint=self.fingerprint[some],
                checksums=self.checksums[some],
                size=self.size[some],
                sketch=self.sketch[starts[rows[0]] : ends[rows[-1]]],
                words=self.words[some],
                note=self.note[some],
            )
        chosen = np.fromiter(rows, np.int64, len(rows))
        return DocumentColumns(
            id=self.id[chosen],
            url=[self.url[row] for row in rows],
            fetched_at=[self.fetched_at[row] for row in rows],
            fingerprint=self.fingerprint[chosen],
            checksums=self.checksums[chosen],
            size=self.size[chosen],
            sketch=np.concatenate([self.sketch[starts[row] : ends[row]] for row in rows]),
            words=self.words[chosen],
            note=[self.note[row] for row in rows],
        )

    def split(self, rows: Sequence[int]) -> Iterator[Sequence[int]]:
        """Cut `rows` into runs that make messages of about 512 KB each."""
        words, urls, times, notes = self.words, self.url, self.fetched_at, self.note

        def size(row: int) -> int:
            return _size(len(urls[row]) + len(times[row] or "") + len(notes[row] or ""), 8 * int(words[row]))

        return split(rows, size)

    @classmethod
    def _packed(
        cls,
        *,
        ids: Sequence[DocumentId],
        urls: list[str],
        times: list[str | None],
        fingerprints: Sequence[int],
        checksums: Sequence[Checksums],
        sizes: Sequence[int],
        sketches: Sequence[NDArray[np.uint64]],
        notes: list[str | None],
    ) -> Self:
        packed = b"".join(each.content + each.tokens + each.shingles for each in checksums)
        return cls(
            id=np.array(ids, np.int64).reshape(-1, 3),
            url=urls,
            fetched_at=times,
            fingerprint=np.array(fingerprints, np.uint64),
            checksums=np.frombuffer(packed, np.uint8).reshape(-1, CHECKSUM_LEVELS * CHECKSUM_BYTES),
            size=np.array(sizes, np.int64),
            sketch=np.concatenate(sketches) if sketches else np.empty(0, np.uint64),
            words=np.array([sketch.size for sketch in sketches], np.int64),
            note=notes,
        )

    def _check(self) -> None:
        expect_column("id", self.id, np.int64, 3)
        expect_column("checksums", self.checksums, np.uint8, CHECKSUM_LEVELS * CHECKSUM_BYTES)
        expect_column("size", self.size, np.int64)
        expect_column("fingerprint", self.fingerprint, np.uint64)
        expect_column("words", self.words, np.int64)
        expect_column("sketch", self.sketch, np.uint64)
        for name in ("checksums", "size", "fingerprint", "words", "url", "fetched_at", "note"):
            column = getattr(self, name)
            if len(column) != len(self.id):
                raise Corrupt(f"expected {len(self.id)} rows of {name}, got {len(column)}")
        words, total = self.words, self.sketch.size
        # No single length may exceed the total: the sum could wrap around to the right number.
        if (words < 0).any() or (words > total).any() or int(words.sum()) != total:
            raise Corrupt(f"expected sketches of {words.sum()} words, got {total}")
        if not isinstance(self.url, list) or {*map(type, self.url)} - {str}:
            raise Corrupt("expected urls as a list of text, got another value")
        for name, values in (("fetched_at", self.fetched_at), ("note", self.note)):
            if not isinstance(values, list) or {*map(type, values)} - {str, _NONE}:
                raise Corrupt(f"expected {name} as a list of text or nil, got another value")


_NAMES: Final = tuple(field.name for field in fields(DocumentColumns))


class DocumentColumnsBuilder:
    """Collects documents one by one and builds their columns."""

    def __init__(self) -> None:
        self._ids: list[DocumentId] = []
        self._urls: list[str] = []
        self._times: list[str | None] = []
        self._fingerprints: list[int] = []
        self._checksums: list[Checksums] = []
        self._sizes: list[int] = []
        self._sketches: list[NDArray[np.uint64]] = []
        self._notes: list[str | None] = []

    def append(
        self,
        *,
        id: DocumentId,
        url: str,
        fetched_at: str | None,
        fingerprint: int,
        checksums: Checksums,
        size: int,
        sketch: NDArray[np.uint64],
        note: str | None = None,
    ) -> None:
        """Add a row."""
        self._ids.append(id)
        self._urls.append(url)
        self._times.append(fetched_at)
        self._fingerprints.append(fingerprint)
        self._checksums.append(checksums)
        self._sizes.append(size)
        self._sketches.append(sketch)
        self._notes.append(note)

    def build(self) -> DocumentColumns:
        """Return the columns of all rows. The builder must not be used afterwards."""
        return DocumentColumns._packed(
            ids=self._ids,
            urls=self._urls,
            times=self._times,
            fingerprints=self._fingerprints,
            checksums=self._checksums,
            sizes=self._sizes,
            sketches=self._sketches,
            notes=self._notes,
        )


def split(items: Sequence[T], size: Callable[[T], int]) -> Iterator[Sequence[T]]:
    """Cut `items` into runs that make messages of about 512 KB each."""
    start = total = 0
    for end, item in enumerate(items):
        total += size(item)
        if total > BATCH_BYTES:
            yield items[start : end + 1]
            start, total = end + 1, 0
    if start < len(items):
        yield items[start:]


def size_of(document: Document) -> int:
    """Return an upper estimate of the size of a document in a message, in bytes."""
    text = len(document.url) + len(document.fetched_at or "") + len(document.note or "")
    return _size(text, document.sketch.nbytes)


def expect_column(name: str, column: Any, dtype: type[np.generic], columns: int = 0) -> None:
    """Raise Corrupt unless `column` is an array of this type with `columns` columns; 0 means one dimension."""
    shape = column.shape[1:]
    if column.dtype != dtype or shape != ((columns,) if columns else ()):
        raise Corrupt(f"{name}: expected {np.dtype(dtype).name} in {columns or 1} columns, got {column.dtype} {shape}")


def _size(characters: int, sketch: int) -> int:
    # A character takes up to four bytes in UTF-8.
    return 120 + 4 * characters + sketch
