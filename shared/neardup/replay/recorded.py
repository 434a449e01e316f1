"""Documents of a corpus as input of a replay: their fingerprints and sketches as the stream computed them.

Bands can be recomputed, because a packed sketch keeps the values that they consist of. All other parts of the signature
version are fixed by the recorded fingerprint and sketch.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.errors import SettingsError, WrongState
from neardup.log import PlainRecord, Record
from neardup.messages.document_columns import DocumentColumnsBuilder
from neardup.offline.clusters.copies import find_copies
from neardup.offline.clusters.groups import first_of_each
from neardup.offline.corpus.columns import ColumnStore
from neardup.settings import Settings
from neardup.signatures.packed_sketch import mips_bytes
from neardup.signatures.signature import SignatureOptions
from neardup.stream.featurizer.page_pool import FeaturizedBatch, FeaturizedChunk
from neardup.types import Checksums, DocumentId

_RECOMPUTABLE: Final = ("bands", "spots")
"""Parts of a signature version that can be recomputed from sketches of another version."""
_TOKENS: Final = 1
"""The level of the checksum of tokens."""
_SETTINGS: Final[Mapping[str, str]] = {
    "main": "main_content",
    "all": "main_content",
    "limits": "page_bytes, page_nesting, page_tokens or over_limit",
    "features": "phrases, weighting, idf_table, drop_stop_words, stem or language",
    "shingles": "shingle_words",
}


def require_replayable(recorded: str, settings: Settings) -> None:
    """Raise SettingsError if sketches of the recorded signature version cannot be replayed under these settings."""
    if settings.search == "probabilistic":
        raise SettingsError(
            "search: expected exact, got probabilistic, which needs the weights of a fingerprint's bits; a corpus does "
            "not have them: give the pages, too"
        )
    asked = SignatureOptions.of(settings).version
    names = []
    for was, now in zip(recorded.split(";"), asked.split(";"), strict=True):
        name = was.partition("-")[0]
        if was != now and name not in _RECOMPUTABLE:
            names.append(f"{_SETTINGS.get(name, name)} (expected {was}, got {now})")
    if names:
        raise SettingsError(
            f"{'; '.join(names)}: cannot be replayed from sketches; give the pages, too, or keep the recorded setting"
        )


class Recorded:
    """Featurized chunks from rows of a corpus.

    The offset of a record is the position of its document in the order of all pages. Raises WrongState if the corpus
    lacks the document whose sketch a copy needs.
    """

    def __init__(self, corpus: ColumnStore, choices: SignatureOptions) -> None:
        self._corpus = corpus
        self._bands = choices.bands
        self._sketch_of = sketched_rows(corpus)

    def records(self, size: int) -> Iterator[list[Record]]:
        """Yield records of all documents in order, `size` at a time."""
        order = self._corpus.order
        times = self._corpus.id[order, 0].tolist()
        for start in range(0, len(times), size):
            places = range(start, min(start + size, len(times)))
            yield [_record(offset=place, timestamp=times[place]) for place in places]

    def featurize(self, records: Sequence[Record], batch_size: int) -> Iterator[FeaturizedBatch]:
        """Yield the documents of these records. All are in one partition, so the offset identifies the document."""
        for start in range(0, len(records), batch_size):
            batch = records[start : start + batch_size]
            yield FeaturizedBatch(batch, [self._chunk(batch)])

    def _chunk(self, records: Sequence[Record]) -> FeaturizedChunk:
        corpus = self._corpus
        documents, bands = DocumentColumnsBuilder(), []
        for record in records:
            row = int(corpus.order[record.offset])
            sketch = corpus.sketch(int(self._sketch_of[row]))
            bands.append(self._bands.keys(mips_bytes(sketch)))
            documents.append(
                id=DocumentId(int(corpus.id[row, 0]), 0, record.offset),
                url=corpus.url(row),
                fetched_at=corpus.fetched_at(row),
                fingerprint=int(corpus.fingerprint[row]),
                checksums=Checksums(*(_bytes(level) for level in corpus.checksums[row])),
                size=int(corpus.size[row]),
                sketch=sketch,
            )
        return FeaturizedChunk(
            documents=documents.build(),
            bands=np.array(bands, np.uint64).reshape(len(records), self._bands.k),
            levels=None,
            skipped=[],
            rejected=[],
        )


def sketched_rows(corpus: ColumnStore) -> NDArray[np.uint32]:
    """Return for each row the row with its sketch, because copies of an earlier document are stored without one.

    Raises WrongState if a row and its copies have no sketch.
    """
    _, group = np.unique(corpus.checksums[:, _TOKENS], axis=0, return_inverse=True)
    bare = np.diff(corpus.starts) == 0
    rows = first_of_each(group.astype(np.uint32), np.lexsort((corpus.rank, bare)))
    if bare[rows].any():  # Copies with equal bytes but different charsets have different tokens.
        rows = np.where(bare[rows], find_copies(corpus).kept, rows)
    if bare[rows].any():
        raise WrongState(
            f"expected a sketch for every document or one of its copies, got {bare[rows].sum()} documents without; "
            "wait until the run that writes the corpus has finished"
        )
    return rows


def _record(*, offset: int, timestamp: int) -> PlainRecord:
    return PlainRecord(topic="", partition=0, offset=offset, timestamp=timestamp, key=None, value=None, headers=())


def _bytes(words: NDArray[np.uint64]) -> bytes:
    return words.astype("<u8").tobytes()
