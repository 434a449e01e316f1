"""Offline passes over a few documents and queries of their results; results written by hand."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet

from neardup.matching.rule import Thresholds
from neardup.messages.settled import Settled, read_batch, write_documents
from neardup.offline.corpus.corpus import Corpus, CorpusFile
from neardup.offline.layout import source_directory
from neardup.offline.options import Options
from neardup.offline.pairs.sources import make_source
from neardup.offline.passes.recluster import open_documents, recluster
from neardup.offline.queries.index_writer import build_index
from neardup.offline.queries.queries import PassFiles, Queries
from neardup.offline.results.schemas import CLUSTERS, CONTAINED
from neardup.signatures.packed_sketch import pack_sketch
from neardup.signatures.signature import Signatures
from neardup.types import Document, DocumentId, Page
from tests.support.corpus_files import write_file

THRESHOLDS = Thresholds()
SIGNATURES = Signatures()
OPTIONS = Options(signature_version=SIGNATURES.version, pair_sources=("shingles",))


def write_results(results: Path, clusters: Sequence[dict[str, Any]], contained: Sequence[dict[str, Any]] = ()) -> None:
    results.mkdir(parents=True, exist_ok=True)
    for name, rows, schema in (("clusters", clusters, CLUSTERS), ("contained", contained, CONTAINED)):
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows), schema), results / f"{name}.parquet")


def document_of(offset: int, page: Page) -> Document:
    """Return a page as a document of the stream."""
    signature = SIGNATURES.of(page)
    assert signature.fingerprint is not None
    assert signature.sketches is not None
    return Document(
        id=DocumentId(1000, 0, offset),
        url=page.url,
        fetched_at=page.fetched_at,
        fingerprint=signature.fingerprint.value,
        checksums=signature.checksums,
        size=len(page.content),
        sketch=pack_sketch(signature.sketches),
    )


def run_pass(state: Path, documents: Sequence[Document]) -> Queries:
    """Run a pass over these documents and return queries on its index. Later calls with more documents continue it."""
    corpus = Corpus(str(state / "corpus"))
    seen: set[bytes] = set()
    settled = []
    for each in sorted(documents, key=lambda document: document.id):
        # As in the stream, documents with the same words are sent without a sketch.
        light = replace(each, sketch=np.empty(0, np.uint64)) if each.checksums.tokens in seen else each
        seen.add(each.checksums.tokens)
        settled.append(Settled(light, None))
    end = corpus.end(0)
    batches = [read_batch(value) for value in write_documents(settled, SIGNATURES.version)]
    write_file(corpus, CorpusFile(0, end, end), batches)
    directory = state / "clusters"
    sources = [make_source(name, source_directory(directory, name), OPTIONS) for name in OPTIONS.pair_sources]
    recluster(corpus, directory, OPTIONS, sources)
    build_index(directory, open_documents(directory))
    return queries_in(state)


def queries_in(state: Path) -> Queries:
    return Queries(place_of(state), SIGNATURES, THRESHOLDS)


def place_of(state: Path) -> PassFiles:
    return PassFiles.of(state / "clusters", OPTIONS)
