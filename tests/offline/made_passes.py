"""Small offline passes, made by hand: documents in, the files that a pass leaves out."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
from numpy.typing import NDArray

from neardup.decision import Thresholds
from neardup.document_batches import Settled, read_batch, write_documents
from neardup.offline.corpus import Corpus, CorpusFile
from neardup.offline.gathered import Gathered, gather
from neardup.offline.index import build_index
from neardup.offline.queries import Place, Queries
from neardup.offline.results import CLUSTERS, CONTAINED
from neardup.packed_sketch import compare, pack_sketch, sample_values
from neardup.signature import Signatures
from neardup.types import Document, DocumentId, Page

THRESHOLDS = Thresholds()
SIGNATURES = Signatures()


class SampledShingles:
    """The postings of gathered documents, looked for one by one."""

    def __init__(self, documents: Gathered) -> None:
        self._documents = documents

    def rows_with(self, keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        found = []
        for row in range(len(self._documents)):
            sketch = self._documents.sketch(row)
            if sketch.size:
                places = np.flatnonzero(np.isin(keys, sample_values(sketch)[1]))
                found += [(place, row) for place in places.tolist()]
        pairs = np.array(found, np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]


def write_results(results: Path, clusters: Sequence[dict[str, Any]], contained: Sequence[dict[str, Any]] = ()) -> None:
    results.mkdir(parents=True, exist_ok=True)
    for name, rows, schema in (("clusters", clusters, CLUSTERS), ("contained", contained, CONTAINED)):
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows), schema), results / f"{name}.parquet")


def rows_of(documents: Sequence[Document]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of clusters and containments, by the rule: a document joins the first document that it is like."""
    leaders: list[Document] = []
    rows: list[dict[str, Any]] = []
    for each in sorted(documents, key=lambda document: document.id):
        relation, resemblance, leader = "first", None, each
        for other in leaders:
            same = each.checksums.relation_to(other.checksums)
            likeness = 1.0 if same else compare(each.sketch, other.sketch).resemblance
            if likeness >= THRESHOLDS.resemblance:
                relation, resemblance, leader = str(same or "near"), likeness, other
                break
        if leader is each:
            leaders.append(each)
        rows.append(row_of(each, leader, relation, resemblance))
    sizes: dict[str, int] = {}
    for row in rows:
        sizes[row["cluster"]] = sizes.get(row["cluster"], 0) + 1
    for row in rows:
        row["cluster_size"] = sizes[row["cluster"]]
    contained = [
        {"document": str(a.id), "container": str(b.id), "containment": much}
        for a in leaders
        for b in leaders
        if a is not b and (much := compare(a.sketch, b.sketch).a_in_b or 0.0) >= THRESHOLDS.containment
    ]
    return rows, contained


def row_of(each: Document, leader: Document, relation: str, resemblance: float | None) -> dict[str, Any]:
    return {
        "timestamp": each.id.timestamp,
        "partition": each.id.partition,
        "offset": each.id.offset,
        "url": each.url,
        "fetched_at": each.fetched_at,
        "size": each.size,
        "cluster": str(leader.id),
        "relation": relation,
        "resemblance": resemblance,
        "cluster_size": 1,
        "representative": str(leader.id),
        "representative_url": leader.url,
    }


def document_of(offset: int, page: Page) -> Document:
    """A page as a document of the stream."""
    signature = SIGNATURES.of(page)
    assert signature.fingerprint is not None
    assert signature.sketches is not None
    return Document(
        DocumentId(1000, 0, offset),
        page.url,
        page.fetched_at,
        signature.fingerprint.value,
        signature.checksums,
        len(page.content),
        pack_sketch(signature.sketches),
    )


def run_pass(directory: Path, documents: Sequence[Document]) -> Queries:
    """A pass over all of these, its index, and who answers questions about it. Again with more, it goes on."""
    corpus = Corpus(str(directory / "corpus"))
    known = {tuple(each.id): each for each in documents}
    seen: set[bytes] = set()
    settled = []
    for each in sorted(known.values(), key=lambda document: document.id):
        # As the stream does: the same words are sent without a sketch.
        light = replace(each, sketch=np.empty(0, np.uint64)) if each.checksums.tokens in seen else each
        seen.add(each.checksums.tokens)
        settled.append(Settled(light, None))
    end = corpus.end(0)
    if settled:
        batches = [read_batch(value) for value in write_documents(settled, SIGNATURES.version)]
        corpus.write(CorpusFile(0, end, end), batches)
    place = place_in(directory)
    gathered = gather(corpus, place.documents)
    write_results(place.results, *rows_of(list(known.values())))
    build_index(place.results, gathered)
    return Queries(place, SIGNATURES, THRESHOLDS)


def place_in(directory: Path) -> Place:
    documents = directory / "documents"
    return Place(directory / "results", documents, lambda: SampledShingles(Gathered(documents)))
