"""The index of an offline pass: URL → documents → cluster → URLs (Broder 1997, "Query support"), in one SQLite file.

The index is built from the results in its directory, under a temporary name, and then renamed. A reader always opens a
complete index and keeps using it. A finished index is never modified. URLs are found by their hash, as in the paper,
which keeps the lookup table small regardless of the length of URLs.
"""

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow
import pyarrow.parquet
from numpy.typing import NDArray

from neardup.errors import CorruptState, NotClustered, WrongState
from neardup.offline.clusters.copies import find_copies
from neardup.offline.corpus.columns import ColumnStore
from neardup.offline.corpus.document_ids import NO_ROW, RowIndex
from neardup.offline.queries.index_reader import (
    FILE,
    HOW_TO_MAKE,
    VERSION,
    Entry,
    checksum_of,
    url_hash,
)
from neardup.offline.results.schemas import CLUSTERS, CONTAINED
from neardup.types import DocumentId
from neardup.util.atomic_file import replacing_path

_ROWS_AT_ONCE: Final = 1 << 14
_TABLES: Final = """
    CREATE TABLE documents (
        timestamp INTEGER, partition INTEGER, offset INTEGER, url TEXT, url_hash INTEGER, fetched_at TEXT,
        fetched INTEGER, size INTEGER, cluster TEXT, cluster_size INTEGER, relation TEXT, resemblance REAL,
        representative TEXT, row INTEGER, kept TEXT, kept_row INTEGER, checksum INTEGER
    );
    CREATE TABLE contained (
        partition INTEGER, offset INTEGER, in_partition INTEGER, in_offset INTEGER, containment REAL
    );
"""
_FILL: Final = "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_FILL_CONTAINED: Final = "INSERT INTO contained VALUES (?, ?, ?, ?, ?)"
_INDEXES: Final = """
    CREATE INDEX documents_by_url ON documents (url_hash);
    CREATE INDEX documents_by_cluster ON documents (cluster);
    CREATE INDEX documents_by_id ON documents (partition, offset);
    CREATE INDEX contained_by_document ON contained (partition, offset);
    CREATE INDEX contained_by_container ON contained (in_partition, in_offset);
"""


def build_index(results: Path, documents: ColumnStore | None = None) -> Path:
    """Build the index of the results in a directory and replace the previous one. Return its path.

    With `documents`, the index also has their rows in the column store, by which queries compare documents that the
    results do not compare. Raises StateError if the results cannot be used. Memory grows by about 100 bytes per
    document, whatever the size of the results.
    """
    with replacing_path(results / FILE) as beside:
        _fill(beside, results, documents)
    return results / FILE


def _fill(beside: Path, results: Path, documents: ColumnStore | None) -> None:
    database = sqlite3.connect(beside)
    try:
        # The file is valid only after its renaming, so it needs no journal. The cache bounds the memory for sorting.
        database.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -65536;")
        database.executescript(_TABLES)
        stored = _StoredRows(documents)
        for batch in _batches(results / "clusters.parquet", CLUSTERS):
            database.executemany(_FILL, ((*entry, checksum_of(entry)) for entry in _entries(batch, stored)))
        for batch in _batches(results / "contained.parquet", CONTAINED):
            rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            parse = DocumentId.parse
            database.executemany(_FILL_CONTAINED, ((*parse(a), *parse(b), much) for a, b, much in rows))
        database.commit()
        database.executescript(f"{_INDEXES} PRAGMA user_version = {VERSION};")
    finally:
        database.close()


def fetch_time(fetched_at: str | None, timestamp: int) -> int:
    """Return the fetch time of a document in milliseconds.

    It is the crawler's time if that is valid, otherwise the time of the record.
    """
    try:
        time = datetime.fromisoformat(fetched_at or "")
        return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
    except ValueError:
        return timestamp


class _StoredRows:
    """Rows of documents in the column store, if there is one."""

    def __init__(self, documents: ColumnStore | None) -> None:
        self._documents = documents
        if documents is not None:
            self._rows, self._kept = RowIndex(documents.id), find_copies(documents).kept

    def of(self, ids: NDArray[np.int64]) -> Iterator[tuple[int, str, int]]:
        """Yield per id its row, and the name and row of the kept document among its copies."""
        if self._documents is None:
            return ((NO_ROW, f"{partition}:{offset}", NO_ROW) for _, partition, offset in ids.tolist())
        rows = self._rows.rows_of(ids)
        if (rows == NO_ROW).any():
            missing = DocumentId(*ids[np.argmax(rows == NO_ROW)].tolist())
            raise WrongState(f"document {missing}: expected a row in the column store, got none; {HOW_TO_MAKE} --full")
        kept = self._kept[rows]
        names = (f"{partition}:{offset}" for _, partition, offset in self._documents.id[kept].tolist())
        return zip(rows.tolist(), names, kept.tolist(), strict=True)


def _entries(batch: pyarrow.RecordBatch, stored: _StoredRows) -> Iterator[Entry]:
    ids = np.stack([batch.column(name).to_numpy() for name in ("timestamp", "partition", "offset")], axis=1)
    rows = zip(*(batch.column(name).to_pylist() for name in CLUSTERS.names), strict=True)
    for row, (number, kept, kept_row) in zip(rows, stored.of(ids), strict=True):
        timestamp, partition, offset, url, fetched_at, size, cluster, relation, resemblance, members, one, _ = row
        yield Entry(
            timestamp=timestamp,
            partition=partition,
            offset=offset,
            url=url,
            url_hash=url_hash(url),
            fetched_at=fetched_at,
            fetched=fetch_time(fetched_at, timestamp),
            size=size,
            cluster=cluster,
            cluster_size=members,
            relation=relation,
            resemblance=resemblance,
            representative=one,
            row=number,
            kept=kept,
            kept_row=kept_row,
        )


def _batches(path: Path, schema: pyarrow.Schema) -> Iterator[pyarrow.RecordBatch]:
    """Yield the rows of a file, or of a directory of parts, with the columns in the order of the schema."""
    if not path.exists():
        raise NotClustered(f"{path}: expected results of an offline pass, got none; {HOW_TO_MAKE}")
    try:
        for part in sorted(path.glob("*.parquet")) if path.is_dir() else [path]:
            with pyarrow.parquet.ParquetFile(part, page_checksum_verification=True) as file:
                for batch in file.iter_batches(_ROWS_AT_ONCE, columns=schema.names):
                    yield batch.select(schema.names)
    except (pyarrow.ArrowException, OSError, ValueError, KeyError) as error:
        raise CorruptState(f"{path}: expected results of an offline pass, got: {error}; {HOW_TO_MAKE}") from error
