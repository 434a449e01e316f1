"""Resemblance on the fly (Broder 1997, "On the fly resemblance"): any text against every document of the corpus.

All shingles of the text are available, but only a sample of the shingles of each document. The sample is therefore
compared with all shingles of the text at the modulus of the document. Comparing two samples would use the coarser
modulus of both, which leaves few shingles of a short document. If the sample holds all shingles of the document, the
result is exact.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.errors import NotClustered, WrongState
from neardup.kernels.signatures.shingling import common
from neardup.matching.rule import Thresholds, decide
from neardup.offline.corpus.columns import ColumnStore
from neardup.offline.pairs.postings import Postings
from neardup.offline.queries.index_reader import HOW_TO_MAKE
from neardup.signatures.packed_sketch import LEAST_SAMPLED, compare, pack_sketch, sample_values
from neardup.signatures.shingles import shingles_of
from neardup.signatures.signature import Signatures, Sketches
from neardup.types import Checksums, Page, Relation

CONTAINS: Final = "contains"
"""Relation of a text to a document that it contains."""
LEAST: Final = 0.1
"""Minimum strength of a reported document: the largest of its resemblance and containments. Smaller values are within
the error of the estimates.
"""

_RELATIONS: Final = (*map(str, Relation), CONTAINS, None)
_VERIFIED: Final = 200
"""Number of documents compared in addition to the requested number, because candidates are ranked by an estimate."""
_EXPONENTS: Final = 64


class SimilarRow(NamedTuple):
    """A document that resembles a text. A share is None if its sample is too small."""

    row: int
    relation: str | None
    resemblance: float
    text_in_document: float | None
    document_in_text: float | None

    @property
    def strength(self) -> float:
        """The largest of the three values."""
        return max(self.resemblance, self.text_in_document or 0.0, self.document_in_text or 0.0)


class SimilarRows(NamedTuple):
    """The most similar documents, in descending order.

    `skipped` is the reason why the text cannot be compared, or None.
    """

    skipped: str | None
    rows: list[SimilarRow]


def similar_rows(
    documents: ColumnStore, postings: Postings, signatures: Signatures, page: Page, thresholds: Thresholds, limit: int
) -> SimilarRows:
    """Return the kept documents that resemble a page most. Raises OverLimit if the settings reject pages over a limit.

    The signatures must have the version of the documents. Postings of later documents are ignored.
    """
    signature = signatures.of(page)
    if signature.sketches is None:
        return SimilarRows(signature.skipped, [])
    text = _text_of(signatures, page, signature.sketches, signature.checksums)
    rows = _candidates(documents, postings, text, limit + _VERIFIED)
    found = [each for row in rows.tolist() if (each := _compare(documents, row, text, thresholds)).strength >= LEAST]
    found.sort(key=lambda each: (_RELATIONS.index(each.relation), -each.strength, documents.document(each.row)))
    return SimilarRows(None, found[:limit])


def check_signatures(documents: ColumnStore, signatures: Signatures) -> None:
    """Raise NotClustered if there are no documents, WrongState if their signature version differs."""
    if not len(documents):
        raise NotClustered(f"expected documents of a pass, got none; {HOW_TO_MAKE}")
    made_by = documents.manifest.signature_version
    if made_by != signatures.version:
        raise WrongState(
            f"expected settings that make signatures {made_by}, got {signatures.version}: use the settings of the crawl"
        )


class _Text(NamedTuple):
    """The queried page with sorted shingles. `at[i]` counts its shingles at the modulus 2^i."""

    shingles: NDArray[np.uint64]
    at: NDArray[np.int64]
    sketch: NDArray[np.uint64]
    checksums: Checksums


def _text_of(signatures: Signatures, page: Page, sketches: Sketches, checksums: Checksums) -> _Text:
    _, tokens = signatures.text_and_tokens(page)
    shingles = np.sort(shingles_of(tokens, signatures.choices.w))
    at, left = [], shingles
    for exponent in range(_EXPONENTS):
        left = left[left & np.uint64((1 << exponent) - 1) == 0]
        at.append(left.size)
    return _Text(shingles, np.array(at), pack_sketch(sketches), checksums)


def _candidates(documents: ColumnStore, postings: Postings, text: _Text, most: int) -> NDArray[np.int64]:
    """Return at most `most` rows that share shingles with the text, those with the highest estimated containment."""
    _, rows = postings.rows_with(text.shingles)
    rows, shared = np.unique(rows[rows < len(documents)], return_counts=True)
    if rows.size <= most:
        return rows
    headers = documents.words[documents.starts[rows]]
    of_text = text.at[(headers & np.uint64(0xFF)).astype(np.int64)]
    of_document = (headers >> np.uint64(32)).astype(np.int64)
    # The larger of the two containments is at least the resemblance.
    share = shared / np.maximum(np.minimum(of_text, of_document), LEAST_SAMPLED)
    return rows[np.argsort(-share, kind="stable")[:most]]


def _compare(documents: ColumnStore, row: int, text: _Text, thresholds: Thresholds) -> SimilarRow:
    sketch = np.asarray(documents.sketch(row))
    exponent, sample = sample_values(sketch)
    shared, of_text = common(sample, text.shingles), int(text.at[exponent])
    whole = exponent == 0
    resemblance = shared / (of_text + sample.size - shared) if whole else compare(text.sketch, sketch).resemblance
    text_in = shared / of_text if whole or of_text >= LEAST_SAMPLED else None
    document_in = shared / sample.size if whole or sample.size >= LEAST_SAMPLED else None
    same = text.checksums.relation_to(Checksums(*(level.tobytes() for level in documents.checksums[row])))
    relation: str | None = decide(same, resemblance, text_in, thresholds)
    if relation is None and document_in is not None and document_in >= thresholds.containment:
        relation = CONTAINS
    return SimilarRow(row, relation, resemblance, text_in, document_in)
