"""Documents as columns of a message: arrays for numbers, lists for text, all sketches in one array."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from neardup.errors import Corrupt
from neardup.signatures.checksums import CHECKSUM_BYTES
from neardup.signatures.packed_sketch import are_packed
from neardup.types import Checksums, Document, DocumentId

T = TypeVar("T")

BATCH_BYTES: Final = 512 * 1024
"""A message is closed when its documents reach this size."""

_LEVELS: Final = 3
_NONE: Final = type(None)


def split(items: Sequence[T], size: Callable[[T], int]) -> Iterator[Sequence[T]]:
    """Cut into runs that make messages of about 512 KB."""
    start = total = 0
    for end, item in enumerate(items):
        total += size(item)
        if total > BATCH_BYTES:
            yield items[start : end + 1]
            start, total = end + 1, 0
    if start < len(items):
        yield items[start:]


def size_of(document: Document) -> int:
    """Bytes on the wire, about, and rather more."""
    text = len(document.url) + len(document.fetched_at or "") + len(document.note or "")
    return _size(text, document.sketch.nbytes)


def columns_of(documents: Sequence[Document], sketches: Sequence[NDArray[np.uint64]] | None = None) -> dict[str, Any]:
    """The columns of these documents, with these sketches instead of their own if there are any."""
    checksums = b"".join(each.checksums.content + each.checksums.tokens + each.checksums.shingles for each in documents)
    if sketches is None:
        sketches = [each.sketch for each in documents]
    return {
        "id": np.array([each.id for each in documents], np.int64).reshape(-1, 3),
        "url": [each.url for each in documents],
        "fetched_at": [each.fetched_at for each in documents],
        "fingerprint": np.array([each.fingerprint for each in documents], np.uint64),
        "checksums": np.frombuffer(checksums, np.uint8).reshape(-1, _LEVELS * CHECKSUM_BYTES),
        "size": np.array([each.size for each in documents], np.int64),
        "sketch": np.concatenate(sketches) if sketches else np.empty(0, np.uint64),
        "words": np.array([sketch.size for sketch in sketches], np.int64),
        "note": [each.note for each in documents],
    }


def joined(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The columns of several lots of documents, one after the other."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    return {
        name: [value for part in parts for value in part[name]]
        if isinstance(column, list)
        else np.concatenate([part[name] for part in parts])
        for name, column in first.items()
    }


def taken(columns: dict[str, Any], rows: Sequence[int]) -> dict[str, Any]:
    """The columns of some of the documents. A range of rows, with no gaps, is not copied."""
    ends = np.cumsum(columns["words"])
    starts = ends - columns["words"]
    sketch = columns["sketch"]
    if isinstance(rows, range) and rows:
        some = slice(rows[0], rows[-1] + 1)
        of_them = slice(starts[rows[0]], ends[rows[-1]])
        return {name: column[of_them if name == "sketch" else some] for name, column in columns.items()}
    chosen: dict[str, Any] = {
        name: [column[row] for row in rows] if isinstance(column, list) else column[rows]
        for name, column in columns.items()
        if name != "sketch"
    }
    chosen["sketch"] = np.concatenate([sketch[starts[row] : ends[row]] for row in rows])
    return chosen


def split_rows(columns: dict[str, Any], rows: Sequence[int]) -> Iterator[Sequence[int]]:
    """Cut into runs that make messages of about 512 KB."""
    words, urls, times, notes = (columns[name] for name in ("words", "url", "fetched_at", "note"))

    def size(row: int) -> int:
        return _size(len(urls[row]) + len(times[row] or "") + len(notes[row] or ""), 8 * int(words[row]))

    return split(rows, size)


def documents_of(body: dict[str, Any], mips: int | None) -> list[Document]:
    """The documents back. Raises Corrupt when the columns are not those of documents.

    `mips`: every document must have a sketch with so many MIPs values; None if it need not have one.
    """
    check(body)
    if mips is not None and not are_packed(body["sketch"], body["words"], mips):
        raise Corrupt(f"expected a packed sketch with {mips} MIPs values for every document")
    return _documents(body)


def check(body: dict[str, Any]) -> None:
    """Raises Corrupt when these are not the columns of documents."""
    try:
        _check(body)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise Corrupt(f"expected the columns of documents, got {sorted(body)}: {error!r}") from error


def _check(body: dict[str, Any]) -> None:
    ids, sizes, fingerprints, words, sketch = (body[name] for name in ("id", "size", "fingerprint", "words", "sketch"))
    checksums, width = body["checksums"], _LEVELS * CHECKSUM_BYTES
    expect_column("id", ids, np.int64, 3)
    expect_column("checksums", checksums, np.uint8, width)
    for name, column, dtype in (
        ("size", sizes, np.int64), ("fingerprint", fingerprints, np.uint64), ("words", words, np.int64),
        ("sketch", sketch, np.uint64),
    ):  # fmt: skip
        expect_column(name, column, dtype)
    urls, times, notes = body["url"], body["fetched_at"], body["note"]
    for name, column in (
        ("checksums", checksums), ("size", sizes), ("fingerprint", fingerprints), ("words", words), ("url", urls),
        ("fetched_at", times), ("note", notes),
    ):  # fmt: skip
        if len(column) != len(ids):
            raise Corrupt(f"expected {len(ids)} rows of {name}, got {len(column)}")
    # None may be longer than all: else their sum could wrap around to the right one.
    if (words < 0).any() or (words > sketch.size).any() or int(words.sum()) != sketch.size:
        raise Corrupt(f"expected sketches of {words.sum()} words, got {sketch.size}")
    if {*map(type, urls)} - {str}:
        raise Corrupt("expected urls of text")
    if {*map(type, times), *map(type, notes)} - {str, _NONE}:
        raise Corrupt("expected times and notes of text")


def _documents(body: dict[str, Any]) -> list[Document]:
    ids, sizes, fingerprints, words, sketch = (body[name] for name in ("id", "size", "fingerprint", "words", "sketch"))
    urls, times, notes = body["url"], body["fetched_at"], body["note"]
    checksums, width = body["checksums"], _LEVELS * CHECKSUM_BYTES
    packed, at, step = checksums.tobytes(), 0, CHECKSUM_BYTES
    documents = []
    columns = zip(ids.tolist(), urls, times, fingerprints.tolist(), sizes.tolist(), words.tolist(), notes, strict=True)
    for number, (place, url, fetched_at, fingerprint, size, count, note) in enumerate(columns):
        start = number * width
        three = Checksums(
            packed[start : start + step],
            packed[start + step : start + 2 * step],
            packed[start + 2 * step : start + width],
        )
        # A copy: a view would keep the whole message in memory for as long as its longest-lived document.
        own = sketch[at : at + count].copy()
        documents.append(Document(DocumentId(*place), url, fetched_at, fingerprint, three, size, own, note))
        at += count
    return documents


def expect_column(name: str, column: Any, dtype: type[np.generic], columns: int = 0) -> None:
    """Raise Corrupt unless it is an array of this type, with so many columns; 0: with one dimension."""
    shape = column.shape[1:]
    if column.dtype != dtype or shape != ((columns,) if columns else ()):
        raise Corrupt(f"{name}: expected {np.dtype(dtype).name} in {columns or 1} columns, got {column.dtype} {shape}")


def _size(characters: int, sketch: int) -> int:
    # A character takes up to four bytes.
    return 120 + 4 * characters + sketch
