"""What of a corpus is left out because it was forgotten, and what its copies inherit."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow
from numpy.typing import NDArray

from neardup.forgotten import Forgotten
from neardup.offline.corpus import Corpus, CorpusFile
from neardup.offline.known_ids import names_of

_ID = ("timestamp", "partition", "offset")


def is_forgotten(ids: NDArray[np.int64], forgotten: Forgotten) -> NDArray[np.bool_]:
    """Which of these ids (timestamp, partition, offset)."""
    return (ids[:, 0] < forgotten.before) | np.isin(names_of(ids), names_of(forgotten.documents))


def ids_of(batch: pyarrow.RecordBatch) -> NDArray[np.int64]:
    """The ids of rows of a corpus."""
    return np.stack([batch.column(name).to_numpy(zero_copy_only=False) for name in _ID], axis=1)


def sketches_left(corpus: Corpus, files: Sequence[CorpusFile], forgotten: Forgotten) -> dict[bytes, bytes]:
    """Checksum of the tokens -> sketch, of the forgotten documents in files whose copies stay there without one.

    A copy has no sketch because its first document has it: were that merely left out, nobody would be near the copy any
    more. Reads the files twice. Takes a sketch for each such document, some 100 bytes for each copy.
    """
    if not forgotten:
        return {}
    heirs = set()
    for tokens, _ in _rows(corpus, files, forgotten, gone=False, sketched=False):
        heirs.add(tokens)
    return {
        tokens: sketch
        for tokens, sketch in _rows(corpus, files, forgotten, gone=True, sketched=True)
        if tokens in heirs
    }


def with_sketches(batch: pyarrow.RecordBatch, left: Mapping[bytes, bytes]) -> pyarrow.RecordBatch:
    """The same rows; those without a sketch have the one that was left to them."""
    if not left:
        return batch
    tokens, sketches = (batch.column(name).to_pylist() for name in ("tokens", "sketch"))
    inherited = [sketch or left.get(own, b"") for own, sketch in zip(tokens, sketches, strict=True)]
    place = batch.schema.get_field_index("sketch")
    return batch.set_column(place, batch.schema.field(place), pyarrow.array(inherited, pyarrow.binary()))


def _rows(
    corpus: Corpus, files: Sequence[CorpusFile], forgotten: Forgotten, *, gone: bool, sketched: bool
) -> Iterator[tuple[bytes, bytes]]:
    """(checksum of the tokens, sketch) of rows that are forgotten or not, with a sketch or without."""
    for file in files:
        for batch in corpus.read(file, (*_ID, "tokens", "sketch")):
            rows = batch.filter(pyarrow.array(is_forgotten(ids_of(batch), forgotten) == gone))
            pairs = zip(rows.column("tokens").to_pylist(), rows.column("sketch").to_pylist(), strict=True)
            yield from (pair for pair in pairs if bool(pair[1]) == sketched)
