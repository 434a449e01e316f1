"""Forgotten documents of a corpus, and the sketches that their copies inherit."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow
from numpy.typing import NDArray

from neardup.messages.forgotten import Forgotten
from neardup.offline.corpus.corpus import Corpus, CorpusFile
from neardup.offline.corpus.document_ids import id_keys

_ID = ("timestamp", "partition", "offset")


class ForgottenIds:
    """A set of ids of forgotten documents."""

    def __init__(self, forgotten: Forgotten) -> None:
        self._keys = np.unique(id_keys(forgotten.documents))

    def __bool__(self) -> bool:
        return self._keys.size > 0

    def contains(self, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return for each id (timestamp, partition, offset) whether the document is forgotten."""
        if not self:
            return np.zeros(len(ids), np.bool_)
        keys = id_keys(ids)
        positions = np.minimum(np.searchsorted(self._keys, keys), self._keys.size - 1)
        found: NDArray[np.bool_] = self._keys[positions] == keys
        return found


def ids_of(batch: pyarrow.RecordBatch) -> NDArray[np.int64]:
    """Return the ids of rows of a corpus file."""
    return np.stack([batch.column(name).to_numpy(zero_copy_only=False) for name in _ID], axis=1)


def orphaned_sketches(corpus: Corpus, files: Sequence[CorpusFile], forgotten_ids: ForgottenIds) -> dict[bytes, bytes]:
    """Return the sketches of forgotten documents on which copies in the files depend, by the checksum of tokens.

    A copy is stored without a sketch because its first document has one. When the first document is forgotten, the copy
    must inherit the sketch, or no other document would be compared with it. Reads the files twice and keeps about 100
    bytes per copy in memory.
    """
    if not forgotten_ids:
        return {}
    heirs = _token_sketches(corpus, files, forgotten_ids, is_forgotten=False, has_sketch=False)
    heir_tokens = {tokens for tokens, _ in heirs}
    orphaned = _token_sketches(corpus, files, forgotten_ids, is_forgotten=True, has_sketch=True)
    return {tokens: sketch for tokens, sketch in orphaned if tokens in heir_tokens}


def with_inherited_sketches(batch: pyarrow.RecordBatch, orphaned: Mapping[bytes, bytes]) -> pyarrow.RecordBatch:
    """Return the rows with orphaned sketches filled in where a row has no sketch of its own."""
    if not orphaned:
        return batch
    tokens, sketches = (batch.column(name).to_pylist() for name in ("tokens", "sketch"))
    inherited = [sketch or orphaned.get(own, b"") for own, sketch in zip(tokens, sketches, strict=True)]
    place = batch.schema.get_field_index("sketch")
    return batch.set_column(place, batch.schema.field(place), pyarrow.array(inherited, pyarrow.binary()))


def _token_sketches(
    corpus: Corpus, files: Sequence[CorpusFile], forgotten_ids: ForgottenIds, *, is_forgotten: bool, has_sketch: bool
) -> Iterator[tuple[bytes, bytes]]:
    """Yield (checksum of the tokens, sketch) of rows selected by both flags."""
    for file in files:
        for batch in corpus.read(file, (*_ID, "tokens", "sketch")):
            rows = batch.filter(pyarrow.array(forgotten_ids.contains(ids_of(batch)) == is_forgotten))
            pairs = zip(rows.column("tokens").to_pylist(), rows.column("sketch").to_pylist(), strict=True)
            yield from (pair for pair in pairs if bool(pair[1]) == has_sketch)
