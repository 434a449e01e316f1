"""Tests of the clusters of a sample crawl, against those of the full shingle sets and against the truth."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from neardup.messages.settled import Settled, read_batch, write_documents
from neardup.offline.clusters.copies import find_copies
from neardup.offline.corpus.corpus import Corpus, CorpusFile
from neardup.offline.layout import source_directory
from neardup.offline.options import Options
from neardup.offline.pairs.sources import make_source
from neardup.offline.passes.recluster import open_documents, recluster
from neardup.offline.report.report import Report
from neardup.sample.crawl import sample_crawl
from neardup.sample.truth import Truth
from neardup.signatures.packed_sketch import pack_sketch
from neardup.signatures.shingles import shingles_of
from neardup.signatures.signature import Signatures
from neardup.types import Document, DocumentId
from tests.offline.made_runs import rows_in
from tests.support import naive
from tests.support.agreement import agreement
from tests.support.corpus_files import write_file

PAGES = 2000
MARGIN = 0.15
"""About four standard deviations of the estimate from 128 values, at a resemblance of .65."""


class Crawl(NamedTuple):
    documents: list[Document]
    shingles: list[NDArray[np.uint64]]
    truths: list[Truth]
    signature_version: str


@cache
def crawl() -> Crawl:
    """Return the pages with a fingerprint, in order. Their offsets are their numbers."""
    signatures = Signatures(everything=False)
    made = Crawl([], [], [], signatures.version)
    for number, sampled in enumerate(sample_crawl(PAGES, seed=5, mean_bytes=8000)):
        signature = signatures.of(sampled.page)
        if signature.fingerprint is None or signature.sketches is None:
            continue
        shingles = shingles_of(signatures.text_and_tokens(sampled.page)[1], signatures.choices.w)
        page, sketch = sampled.page, pack_sketch(signature.sketches)
        made.documents.append(
            Document(
                id=DocumentId(number, 0, number),
                url=page.url,
                fetched_at=page.fetched_at,
                fingerprint=signature.fingerprint.value,
                checksums=signature.checksums,
                size=len(page.content),
                sketch=sketch,
            )
        )
        made.shingles.append(shingles)
        made.truths.append(sampled.truth)
    return made


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Report]:
    """Run a pass with the default options."""
    directory = tmp_path_factory.mktemp("sample")
    corpus = Corpus(str(directory / "corpus"))
    settled = [Settled(document, None) for document in crawl().documents]
    batches = [read_batch(value) for value in write_documents(settled, crawl().signature_version)]
    write_file(corpus, CorpusFile(0, 0, len(batches) - 1), batches)
    out, options = directory / "out", Options(signature_version=crawl().signature_version)
    sources = [make_source(name, source_directory(out, name), options) for name in options.pair_sources]
    return directory, recluster(corpus, out, options, sources)


def labels(directory: Path) -> list[str]:
    """Return the cluster of each document."""
    found = {row["offset"]: row["cluster"] for row in rows_in(directory, "clusters")}
    return [found[document.id.offset] for document in crawl().documents]


def exact_resemblances(rows: Sequence[int]) -> NDArray[np.float64]:
    """Return the resemblance of all pairs of these documents from their full sets of shingles."""
    sets = [crawl().shingles[row] for row in rows]
    postings: dict[int, list[int]] = {}
    for place, each in enumerate(sets):
        for shingle in each.tolist():
            postings.setdefault(shingle, []).append(place)
    found = np.zeros((len(rows), len(rows)))
    for place, each in enumerate(sets):
        shared = np.bincount([other for shingle in each.tolist() for other in postings[shingle]], minlength=len(rows))
        found[place] = shared / (each.size + np.array([other.size for other in sets]) - shared)
    return found


def test_clusters_equal_those_of_the_full_sets_where_the_estimate_has_no_influence(done: tuple[Path, Report]) -> None:
    """Compare the clusters where estimation errors have no influence.

    In these components no pair of connected documents is within a margin of the threshold, and no document has a choice
    between clusters with nearly equal resemblance.
    """
    directory, _ = done
    kept = np.flatnonzero(find_copies(open_documents(directory / "out")).comparable).tolist()
    threshold = Options(signature_version="").thresholds.resemblance
    like = exact_resemblances(kept)
    edges = list(zip(*np.nonzero(np.triu(like >= threshold - MARGIN, 1)), strict=True))
    firm = [(int(a), int(b)) for a, b in edges if like[a, b] >= threshold]
    expected = naive.leaders(range(len(kept)), firm, lambda a, b: float(like[a, b]), threshold)
    found = labels(directory)
    component = np.array(naive.components(len(kept), [(int(a), int(b)) for a, b in edges]))
    compared = 0
    for each in np.unique(component):
        rows = np.flatnonzero(component == each).tolist()
        firsts = sorted({expected[row] for row in rows})
        pairs = like[np.ix_(rows, rows)]
        choices = np.sort(like[np.ix_(rows, firsts)], axis=1)[:, -2:]
        unsure = len(firsts) > 1 and (np.diff(choices, axis=1) < MARGIN).any()
        if unsure or (abs(pairs - threshold) < MARGIN).any():
            continue
        compared += len(rows)
        for row in rows:
            assert found[kept[row]] == found[kept[expected[row]]], (row, expected[row])
        assert len({found[kept[row]] for row in rows}) == len(firsts)
    assert compared >= 0.75 * len(kept)


def test_clusters_agree_with_the_truth(done: tuple[Path, Report]) -> None:
    scored = [place for place, truth in enumerate(crawl().truths) if truth.duplicate is not None]
    true = [truth.duplicate_of if truth.duplicate else truth.number for truth in crawl().truths]
    found = labels(done[0])
    figures = agreement(np.array([found[place] for place in scored]), np.array([true[place] for place in scored]))
    assert figures.precision >= 0.99
    assert figures.recall >= 0.9
    assert figures.bcubed_f1 >= 0.97
    assert figures.rand >= 0.94
