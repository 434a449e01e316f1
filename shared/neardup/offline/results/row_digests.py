"""Digests of the content per URL in a file of clusters, to compare two files without loading their text."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Self

import numpy as np
import pyarrow
import pyarrow.compute
import pyarrow.parquet
from numpy.typing import NDArray

from neardup.errors import CorruptState
from neardup.kernels.common.hashing import hash_slices

COLUMNS: Final = ("url", "document", "cluster", "relation", "representative", "representative_url")
"""Columns that are published for a URL."""
_READ: Final = (
    "timestamp",
    "partition",
    "offset",
    "url",
    "cluster",
    "relation",
    "representative",
    "representative_url",
)
_ROWS: Final = 1 << 14


class UrlRows(NamedTuple):
    """The last document of each URL, which represents it, sorted by the digest of the URL.

    `url` and `check` are a 128-bit digest of the URL, `content` is a digest of the published columns, and `row` is the
    row number in the file.
    """

    url: NDArray[np.uint64]
    check: NDArray[np.uint64]
    content: NDArray[np.uint64]
    row: NDArray[np.int64]

    @classmethod
    def of(cls, path: Path) -> Self:
        """Read a file in batches. Raises StateError."""
        ids, digests = [np.empty((0, 3), np.int64)], [np.empty((0, 3), np.uint64)]
        for batch in rows_of(path):
            ids.append(np.stack([batch.column(name).to_numpy() for name in _READ[:3]], axis=1))
            digests.append(_digests(batch))
        timestamp, partition, offset = np.concatenate(ids).T
        url, check, content = np.concatenate(digests).T
        order = np.lexsort((offset, partition, timestamp, check, url))
        url, check = url[order], check[order]
        last = np.append((url[1:] != url[:-1]) | (check[1:] != check[:-1]), True)[: url.size]
        row = order[last]
        return cls(url[last], check[last], content[row], row)

    def changed_from(self, other: "UrlRows") -> NDArray[np.int64]:
        """Return the rows of URLs that are missing in `other` or have different content there, in file order."""
        found = self._found_in(other)
        unchanged = found >= 0
        unchanged[unchanged] = other.content[found[unchanged]] == self.content[unchanged]
        return np.sort(self.row[~unchanged])

    def missing_in(self, other: "UrlRows") -> NDArray[np.int64]:
        """Return the rows of URLs that `other` does not have, in file order."""
        return np.sort(self.row[self._found_in(other) < 0])

    def _found_in(self, other: "UrlRows") -> NDArray[np.int64]:
        """Return the position of each URL in `other`, or -1."""
        found = np.full(self.url.size, -1, np.int64)
        first = np.searchsorted(other.url, self.url)
        # Two URLs may share the first half of a digest. Three URLs that do are practically impossible.
        for place in (first, first + 1):
            inside = np.flatnonzero(place < other.url.size)
            at = place[inside]
            same = (other.url[at] == self.url[inside]) & (other.check[at] == self.check[inside])
            found[inside[same]] = at[same]
        return found


def rows_of(path: Path) -> Iterator[pyarrow.RecordBatch]:
    """Yield ids and COLUMNS of a file of clusters in batches. Raises StateError."""
    try:
        with pyarrow.parquet.ParquetFile(path, page_checksum_verification=True) as file:
            for batch in batches_of(file, _READ):
                partition, offset = (batch.column(name).cast(pyarrow.string()) for name in _READ[1:3])
                names = pyarrow.compute.binary_join_element_wise(partition, offset, ":")
                yield batch.append_column("document", names)
    except (pyarrow.ArrowException, OSError, ValueError, KeyError) as error:
        raise CorruptState(
            f"{path}: expected results of an offline pass, got: {error}; run `neardup recluster --full`"
        ) from error


def batches_of(file: pyarrow.parquet.ParquetFile, columns: Sequence[str]) -> Iterator[pyarrow.RecordBatch]:
    """Yield the batches of each row group. `iter_batches` is not used, because its memory grows over a file."""
    for group in range(file.num_row_groups):
        yield from file.read_row_group(group, list(columns), use_threads=False).to_batches(_ROWS)


def _digests(batch: pyarrow.RecordBatch) -> NDArray[np.uint64]:
    seeds = np.zeros(len(batch), np.uint64)
    url = content = _hashes(batch.column("url"), seeds)
    check = _hashes(batch.column("url"), seeds + np.uint64(1))
    for name in COLUMNS[1:]:
        content = _hashes(batch.column(name), content)
    return np.stack([url, check, content], axis=1)


def _hashes(column: pyarrow.Array, seeds: NDArray[np.uint64]) -> NDArray[np.uint64]:
    # A slice may start anywhere in its buffers, but the cast creates new buffers with 64-bit offsets.
    strings = column.cast(pyarrow.large_string())
    _, offsets, data = strings.buffers()
    ends = np.frombuffer(offsets, np.int64)[strings.offset : strings.offset + len(strings) + 1]
    hashes: NDArray[np.uint64] = hash_slices(np.frombuffer(data or b"", np.uint8), ends, seeds)
    return hashes
