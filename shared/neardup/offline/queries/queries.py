"""Queries of the results of an offline pass: copies of a page, documents similar to a text, new locations, changes.

The queries are those of Broder 1997, "Web-based applications". They read only the files of the pass. One `Queries`
serves all threads, and each query uses the newest index.
"""

import threading
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

from neardup.errors import NotClustered
from neardup.matching.rule import Thresholds
from neardup.offline.corpus.columns import ColumnStore
from neardup.offline.layout import documents_directory, source_directory
from neardup.offline.options import Options
from neardup.offline.pairs.postings import Postings
from neardup.offline.pairs.sources import ShingleSource
from neardup.offline.queries.answers import (
    Cluster,
    ClusterMember,
    Containment,
    Lookup,
    Moved,
    NewLocation,
    SimilarDocument,
    SimilarDocuments,
    UrlDocument,
)
from neardup.offline.queries.changes import ChangeSummary, History, history_of, summarise
from neardup.offline.queries.index_reader import FILE, HOW_TO_MAKE, Entry, IndexReader
from neardup.offline.queries.relation import relation_between
from neardup.offline.queries.similar import check_signatures, similar_rows
from neardup.settings import Settings
from neardup.signatures.signature import SignatureOptions, Signatures
from neardup.types import Page, PageRef
from neardup.util.formatting import rounded

MOST_URLS: Final = 100
"""Default limit of listed URLs and containments."""
MOST_SIMILAR: Final = 10


class PassFiles(NamedTuple):
    """The results directory of a pass, and functions that open its documents and postings.

    The functions may raise StateError.
    """

    results: Path
    documents: Callable[[], ColumnStore]
    postings: Callable[[], Postings]

    @classmethod
    def of(cls, directory: Path, options: Options) -> "PassFiles":
        """Return the files of `recluster` in a directory."""
        return cls(
            directory, lambda: ColumnStore(documents_directory(directory)), lambda: _postings(directory, options)
        )


class _OpenPass:
    """Files that belong to one index, opened on first use."""

    def __init__(self, identity: tuple[int, int, int], files: PassFiles) -> None:
        self.identity = identity
        self._files = files

    @cached_property
    def documents(self) -> ColumnStore:
        return self._files.documents()

    @cached_property
    def postings(self) -> Postings:
        return self._files.postings()


class Queries:
    """Queries of a pass. All methods may block and raise StateError; NotClustered means that there is no index yet."""

    def __init__(self, files: PassFiles, signatures: Signatures, thresholds: Thresholds) -> None:
        self._files = files
        self._signatures = signatures
        self._thresholds = thresholds
        self._path = files.results / FILE
        self._lock = threading.Lock()
        self._opened: _OpenPass | None = None
        self._summary: tuple[tuple[int, int, int], ChangeSummary] | None = None

    @classmethod
    def of(cls, directory: Path, settings: Settings) -> "Queries":
        """Create queries of the pass in a directory, which need not exist yet. Raises SettingsError."""
        files = PassFiles.of(directory, Options.of(settings))
        return cls(files, Signatures(SignatureOptions.of(settings)), Thresholds.of(settings))

    def lookup(self, url: str, limit: int = MOST_URLS) -> Lookup | None:
        """Return the documents of a URL, or None if there are none.

        `limit` applies to documents, to URLs of a cluster and to containments.
        """
        with IndexReader(self._path) as index:
            entries = index.documents_of(url)[:limit]
            if not entries:
                return None
            kept = dict.fromkeys(entry.kept for entry in entries)
            return Lookup(
                url,
                [
                    UrlDocument(
                        each.document, each.fetched_at, each.size, each.cluster, each.relation, each.resemblance
                    )
                    for each in entries
                ],
                [
                    Cluster(
                        each.cluster,
                        each.cluster_size,
                        PageRef(index.url_of(each.representative), each.representative),
                        [_cluster_member(other) for other in index.urls_in(each.cluster, limit)],
                    )
                    for each in {entry.cluster: entry for entry in entries}.values()
                ],
                _containments(each for name in kept for each in index.containers(name, limit)),
                _containments(each for name in kept for each in index.contents(name, limit)),
            )

    def similar(self, page: Page, limit: int = MOST_SIMILAR) -> SimilarDocuments:
        """Return the documents that resemble a page most. The page need not be in the corpus. May raise OverLimit."""
        opened = self._open()
        check_signatures(opened.documents, self._signatures)  # before any postings are loaded
        skipped, rows = similar_rows(opened.documents, opened.postings, self._signatures, page, self._thresholds, limit)
        with IndexReader(self._path) as index:
            found = [(index.entry(opened.documents.document(each.row)), each) for each in rows]
        return SimilarDocuments(
            skipped,
            [
                SimilarDocument(
                    url=entry.url,
                    document=entry.document,
                    fetched_at=entry.fetched_at,
                    cluster=entry.cluster,
                    cluster_size=entry.cluster_size,
                    relation=each.relation,
                    resemblance=round(each.resemblance, 4),
                    text_in_document=rounded(each.text_in_document),
                    document_in_text=rounded(each.document_in_text),
                )
                for entry, each in found
                # Postings may have documents that are not indexed yet or that are no longer kept.
                if entry is not None and entry.kept == entry.document
            ],
        )

    def moved(self, url: str) -> Moved | None:
        """Return the present location of the page of a URL (Broder's "Lost and found"), or None for an unknown URL."""
        with IndexReader(self._path) as index:
            entries = index.documents_of(url)
            if not entries:
                return None
            last = entries[0]
            other = index.elsewhere(last)
        if other is None:
            return Moved(url, last.document, last.fetched_at, False, None)
        relation, resemblance = None, None
        if last.row >= 0:
            relation, resemblance = relation_between(self._open().documents, last, other, self._thresholds)
        found = NewLocation(other.url, other.document, other.fetched_at, relation, rounded(resemblance))
        later = (other.fetched, other.id) > (last.fetched, last.id)
        return Moved(url, last.document, last.fetched_at, later, found)

    def history(self, url: str) -> History | None:
        """Return the history of a URL, or None if the URL is unknown."""
        with IndexReader(self._path) as index:
            entries = index.documents_of(url)
        return history_of(self._open().documents, entries, self._thresholds) if entries else None

    def changes(self) -> ChangeSummary:
        """Return the changes over all URLs with several documents. The result is cached per index."""
        identity = self._open().identity
        with self._lock:
            if self._summary is None or self._summary[0] != identity:
                with IndexReader(self._path) as index:
                    # Open the documents after the index: they then have all of its rows, even if a pass ends meanwhile.
                    summary = summarise(self._open().documents, index.fetched_again(), self._thresholds)
                self._summary = (identity, summary)
            return self._summary[1]

    def _open(self) -> _OpenPass:
        """Return the files of the newest index."""
        try:
            now = self._path.stat()
        except FileNotFoundError:
            raise NotClustered(f"{self._path}: expected an index of clusters, got none yet; {HOW_TO_MAKE}") from None
        identity = (now.st_ino, now.st_mtime_ns, now.st_size)
        opened = self._opened
        if opened is None or opened.identity != identity:
            opened = self._opened = _OpenPass(identity, self._files)
        return opened


def _postings(directory: Path, options: Options) -> Postings:
    shingles = source_directory(directory, ShingleSource.name)
    postings = ShingleSource(shingles, options).postings
    if not postings.rows:
        raise NotClustered(
            f"{shingles}: expected the shingles of all documents, got none; {HOW_TO_MAKE} with "
            f"{ShingleSource.name} among its sources"
        )
    return postings


def _cluster_member(entry: Entry) -> ClusterMember:
    return ClusterMember(entry.url, entry.document, entry.fetched_at, entry.size, entry.relation, entry.resemblance)


def _containments(found: Iterable[tuple[float, Entry]]) -> list[Containment]:
    return [Containment(entry.url, entry.document, round(containment, 4)) for containment, entry in found]
