"""A reader of the index of an offline pass: URL → documents → cluster → URLs (see `index_writer`)."""

import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import xxhash

from neardup.errors import CorruptState, NotClustered, WrongState
from neardup.types import DocumentId

FILE: Final = "index.sqlite"
VERSION: Final = 2
HOW_TO_MAKE: Final = "run `neardup recluster`"

_BY_URL: Final = """
    SELECT * FROM documents WHERE url_hash = ? AND url = ?
    ORDER BY fetched DESC, timestamp DESC, partition DESC, offset DESC
"""
_BY_NAME: Final = "SELECT * FROM documents WHERE partition = ? AND offset = ?"
_BY_ID: Final = "SELECT * FROM documents WHERE partition = ? AND offset = ? AND timestamp = ?"
_URLS_IN: Final = """
    SELECT * FROM documents WHERE rowid IN (
        SELECT first_value(rowid) OVER (
            PARTITION BY url ORDER BY fetched DESC, timestamp DESC, partition DESC, offset DESC
        ) FROM documents WHERE cluster = ?
    ) ORDER BY fetched DESC, timestamp DESC, partition DESC, offset DESC LIMIT ?
"""
_ELSEWHERE: Final = """
    SELECT * FROM documents WHERE cluster = ? AND url <> ?
    ORDER BY fetched DESC, timestamp DESC, partition DESC, offset DESC LIMIT 1
"""
_CONTAINERS: Final = """
    SELECT containment, documents.* FROM contained
    JOIN documents ON documents.partition = in_partition AND documents.offset = in_offset
    WHERE contained.partition = ? AND contained.offset = ?
    ORDER BY containment DESC, timestamp, in_partition, in_offset LIMIT ?
"""
_CONTENTS: Final = """
    SELECT containment, documents.* FROM contained
    JOIN documents ON documents.partition = contained.partition AND documents.offset = contained.offset
    WHERE in_partition = ? AND in_offset = ?
    ORDER BY containment DESC, timestamp, contained.partition, contained.offset LIMIT ?
"""
_FETCHED_AGAIN: Final = """
    SELECT * FROM documents
    WHERE url_hash IN (SELECT url_hash FROM documents GROUP BY url_hash HAVING count(*) > 1)
    ORDER BY url_hash, url, fetched, timestamp, partition, offset
"""


class Entry(NamedTuple):
    """A document in the index. The fields are the columns of the table, except for the checksum of the row.

    Create entries with keyword arguments. SQLite has no checksums, so the table stores one per row.

    `fetched` is the fetch time in milliseconds: `fetched_at` if it is a time in ISO 8601, otherwise the time of the
    record. `kept` is the document that is compared instead of its copies. `row` and `kept_row` are the rows of the
    document and of the kept document in the column store, or -1 if the pass kept no sketches.
    """

    timestamp: int
    partition: int
    offset: int
    url: str
    url_hash: int
    fetched_at: str | None
    fetched: int
    size: int
    cluster: str
    cluster_size: int
    relation: str
    resemblance: float | None
    representative: str
    row: int
    kept: str
    kept_row: int

    @property
    def id(self) -> DocumentId:
        """Id of the document, its position in the order of all pages."""
        return DocumentId(self.timestamp, self.partition, self.offset)

    @property
    def document(self) -> str:
        """Name of the document."""
        return str(self.id)


class IndexReader:
    """An index at the time of opening. Use as `with IndexReader(path) as index`, in one thread.

    All methods may block and raise StateError; NotClustered means that there is no index.
    """

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise NotClustered(f"{path}: expected an index of clusters, got none yet; {HOW_TO_MAKE}")
        self._path = path
        # The file is replaced and never modified, so no lock is needed.
        self._database = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
        try:
            ((version,),) = self._select("PRAGMA user_version")
            if version != VERSION:
                raise WrongState(f"{path}: expected version {VERSION} of an index, got {version}; {HOW_TO_MAKE}")
        except BaseException:
            self._database.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._database.close()

    def documents_of(self, url: str) -> list[Entry]:
        """Return the documents of a URL, the last fetched first."""
        try:
            return [self._entry(row) for row in self._select(_BY_URL, url_hash(url), url)]
        except UnicodeEncodeError:
            return []  # A URL from the command line may contain lone surrogates; a crawled URL never does.

    def entry(self, document: DocumentId) -> Entry | None:
        """Return the entry of a document, or None."""
        rows = self._select(_BY_ID, document.partition, document.offset, document.timestamp)
        return next((self._entry(row) for row in rows), None)

    def url_of(self, document: str) -> str:
        """Return the URL of a document to which another entry refers. Raises CorruptState if it does not exist."""
        for row in self._select(_BY_NAME, *DocumentId.parse(document)):
            return self._entry(row).url
        raise CorruptState(f"{self._path}: expected the document {document}, got none; {HOW_TO_MAKE}")

    def urls_in(self, cluster: str, limit: int) -> list[Entry]:
        """Return the last fetched document of each URL in a cluster, the latest first."""
        return [self._entry(row) for row in self._select(_URLS_IN, cluster, limit)]

    def elsewhere(self, entry: Entry) -> Entry | None:
        """Return the last fetched document of the same cluster under another URL."""
        return next((self._entry(row) for row in self._select(_ELSEWHERE, entry.cluster, entry.url)), None)

    def containers(self, document: str, limit: int) -> list[tuple[float, Entry]]:
        """Return the containers of a document with the contained share, in descending order."""
        return [(row[0], self._entry(row[1:])) for row in self._select(_CONTAINERS, *DocumentId.parse(document), limit)]

    def contents(self, document: str, limit: int) -> list[tuple[float, Entry]]:
        """Return the documents contained in a document with their contained share, in descending order."""
        return [(row[0], self._entry(row[1:])) for row in self._select(_CONTENTS, *DocumentId.parse(document), limit)]

    def fetched_again(self) -> Iterator[Entry]:
        """Yield the documents of URLs with several documents, grouped by URL and in the order of fetching.

        A URL whose hash equals that of another URL may appear with a single document.
        """
        return (self._entry(row) for row in self._select(_FETCHED_AGAIN))

    def _entry(self, row: Sequence[Any]) -> Entry:
        *values, expected = row
        entry = Entry._make(values)
        if (got := checksum_of(entry)) != expected:
            raise CorruptState(f"{self._path}: expected checksum {expected} of an entry, got {got}; {HOW_TO_MAKE}")
        return entry

    def _select(self, sql: str, *parameters: int | str) -> Iterator[tuple[Any, ...]]:
        try:
            yield from self._database.execute(sql, parameters)
        except sqlite3.DatabaseError as error:
            raise CorruptState(f"{self._path}: expected an index of clusters, got: {error}; {HOW_TO_MAKE}") from error


def checksum_of(entry: Entry) -> int:
    """Return the CRC-32 of all fields of an entry."""
    return zlib.crc32(repr(tuple(entry)).encode())


def url_hash(url: str) -> int:
    """Return the hash by which a URL is found, as a signed number. Raises UnicodeEncodeError for lone surrogates."""
    return xxhash.xxh64_intdigest(url.encode()) - (1 << 63)
