"""Offline passes over generated documents."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
from numpy.typing import NDArray

from neardup.matching.found_by import NO_TABLE
from neardup.matching.match import Match
from neardup.messages.settled import Settled, read_batch, write_documents
from neardup.offline.corpus.columns import ColumnStore, gather
from neardup.offline.corpus.corpus import Corpus, CorpusFile
from neardup.offline.options import Options
from neardup.offline.pairs.pair_source import IgnoredKeys, Pairs
from neardup.offline.passes.recluster import recluster
from neardup.offline.report.report import Report
from neardup.types import Document, Relation
from tests.support.corpus_files import write_file
from tests.support.documents import shingles

SIGNATURE = "nd1"
ALL_PAIRS = "shingles"
"""Name in the settings of the source that the source of the tests replaces."""


def options(**changes: Any) -> Options:
    return Options(signature_version=SIGNATURE, **{"pair_sources": (ALL_PAIRS,), **changes})


class AllPairs:
    """A source that returns every pair of documents."""

    name = ALL_PAIRS

    def __init__(self, score: Callable[[int, int], float] = lambda a, b: 1.0) -> None:
        self.calls: list[int] = []
        self._score = score

    def pairs(
        self,
        documents: ColumnStore,
        kept: NDArray[np.bool_],
        first_new: int,
        progress: Callable[[int, int], None],
    ) -> tuple[Pairs, IgnoredKeys]:
        self.calls.append(first_new)
        rows = np.flatnonzero(kept).tolist()
        progress(1, 2)
        return pairs_of([(a, b) for a, b in combinations(rows, 2) if b >= first_new], self._score), IgnoredKeys(0, 0)


def pairs_of(pairs: Iterable[tuple[int, int]], score: Callable[[int, int], float] = lambda a, b: 1.0) -> Pairs:
    listed = sorted(pairs)
    both = np.array(listed, np.uint32).reshape(-1, 2)
    scores = np.array([score(a, b) for a, b in listed], np.float32)
    return Pairs(np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1]), scores)


def like(seed: int, *parts: int, size: int = 200) -> NDArray[np.uint64]:
    """Return shingles in slots: two documents have the same shingles in slots with the same number."""
    share = size // len(parts)
    return np.concatenate([shingles(1000 * seed + 31 * slot + part, share) for slot, part in enumerate(parts)])


def match_of(earlier: Document, relation: Relation) -> Match:
    return Match(
        id=earlier.id,
        url=earlier.url,
        relation=relation,
        hamming=0,
        resemblance=1.0,
        containment=None,
        found_by=NO_TABLE,
        group=earlier.id,
        group_url=earlier.url,
    )


def settled(documents: Iterable[Document], matches: Mapping[int, Match] | None = None) -> list[Settled]:
    """Return the documents as settled by the stream: unique, unless their offset has a match."""
    return [Settled(each, (matches or {}).get(each.id.offset)) for each in documents]


def add_file(corpus: Corpus, some: Sequence[Settled]) -> None:
    """Add the next file of a corpus."""
    first = corpus.end(0)
    file = CorpusFile(0, first, first + max(0, len(some) - 1))
    write_file(corpus, file, [read_batch(value) for value in write_documents(some, SIGNATURE)])


def gathered(directory: Path, some: Sequence[Settled]) -> ColumnStore:
    corpus = Corpus(str(directory / "corpus"))
    add_file(corpus, some)
    return gather(corpus, directory / "gathered")


def run(directory: Path, *batches: Sequence[Settled], **changes: Any) -> Report:
    """Run a pass after each batch."""
    corpus = Corpus(str(directory / "corpus"))
    for batch in batches:
        add_file(corpus, batch)
        report = recluster(corpus, directory / "out", options(**changes), [AllPairs()])
    return report


def rows_in(directory: Path, name: str) -> list[dict[str, Any]]:
    """Read a file of results."""
    rows: list[dict[str, Any]] = pyarrow.parquet.read_table(directory / "out" / f"{name}.parquet").to_pylist()
    return rows


def clusters_in(directory: Path) -> dict[str, str]:
    """Return the cluster of each document."""
    return {f"{row['partition']}:{row['offset']}": row["cluster"] for row in rows_in(directory, "clusters")}


RESULTS = ("clusters", "contained", "edges", "overturned")


def results_in(directory: Path) -> dict[str, list[dict[str, Any]]]:
    """Return all results that do not depend on earlier runs: revisions and retracted duplicates are left out."""
    found = {name: rows_in(directory, name) for name in RESULTS}
    found["overturned"] = [{**row, "revision": 0} for row in found["overturned"] if row["relation"] is not None]
    return found
