"""Questions to the results of an offline pass: who else has this page, what is like this text, where has it gone.

The questions are those of Broder 1997, "Web-based applications". They read what the pass left in its directory and
nothing else; one `Queries` serves all threads, and every question is answered from the newest index.
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
"""Of a cluster or a containment, so many are told unless more are asked for."""
MOST_SIMILAR: Final = 10


class PassFiles(NamedTuple):
    """Where the results of a pass are, and how to open its documents and postings. Opening may raise StateError."""

    results: Path
    documents: Callable[[], ColumnStore]
    postings: Callable[[], Postings]

    @classmethod
    def of(cls, directory: Path, options: Options) -> "PassFiles":
        """That of `recluster` in a directory."""
        return cls(
            directory, lambda: ColumnStore(documents_directory(directory)), lambda: _postings(directory, options)
        )


class _OpenPass:
    """What belongs to one index, opened when it is first needed."""

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
    """Answers questions. All of them may block, and raise StateError: NotClustered while there is no index yet."""

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
        """About the pass in a directory. Raises SettingsError; a directory with no pass in it is none yet."""
        files = PassFiles.of(directory, Options.of(settings))
        return cls(files, Signatures(SignatureOptions.of(settings)), Thresholds.of(settings))

    def lookup(self, url: str, limit: int = MOST_URLS) -> Lookup | None:
        """What is known of a url, None if nothing is. `limit`: documents, urls of a cluster and containments told."""
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
        """The documents most like a page, which need not be known. Raises OverLimit, too, if the settings say so."""
        opened = self._open()
        check_signatures(opened.documents, self._signatures)  # before anything is made of them
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
                # Postings may have documents of a pass whose index is not made yet, and such as are no longer kept.
                if entry is not None and entry.kept == entry.document
            ],
        )

    def moved(self, url: str) -> Moved | None:
        """Where the page of a url is now ("Lost and found"), None if the url is unknown."""
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
        """How the page of a url changed from one crawl to the next, None if the url is unknown."""
        with IndexReader(self._path) as index:
            entries = index.documents_of(url)
        return history_of(self._open().documents, entries, self._thresholds) if entries else None

    def changes(self) -> ChangeSummary:
        """How pages change, over all urls with several documents. Takes time by their number, once for each index."""
        identity = self._open().identity
        with self._lock:
            if self._summary is None or self._summary[0] != identity:
                with IndexReader(self._path) as index:
                    # Opened after the index, the documents have all of its rows, even if it has just been replaced.
                    summary = summarise(self._open().documents, index.fetched_again(), self._thresholds)
                self._summary = (identity, summary)
            return self._summary[1]

    def _open(self) -> _OpenPass:
        """The documents of the newest index."""
        try:
            now = self._path.stat()
        except FileNotFoundError:
            raise NotClustered(
                f"{self._path}: expected an index of clusters, there is none yet; {HOW_TO_MAKE}"
            ) from None
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
            f"{shingles}: expected the shingles of all documents, there are none; {HOW_TO_MAKE} with "
            f"{ShingleSource.name} among its sources"
        )
    return postings


def _cluster_member(entry: Entry) -> ClusterMember:
    return ClusterMember(entry.url, entry.document, entry.fetched_at, entry.size, entry.relation, entry.resemblance)


def _containments(found: Iterable[tuple[float, Entry]]) -> list[Containment]:
    return [Containment(entry.url, entry.document, round(containment, 4)) for containment, entry in found]
