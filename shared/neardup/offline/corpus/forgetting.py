"""What of a corpus is left out because it was forgotten, and what its copies inherit."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow
from numpy.typing import NDArray

from neardup.messages.forgotten import Forgotten
from neardup.offline.corpus.corpus import Corpus, CorpusFile
from neardup.offline.corpus.known_ids import names_of

_ID = ("timestamp", "partition", "offset")


class LeftOut:
    """Documents that are forgotten, in a form that is quickly asked."""

    def __init__(self, forgotten: Forgotten) -> None:
        self._names = np.unique(names_of(forgotten.documents))

    def __bool__(self) -> bool:
        return self._names.size > 0

    def among(self, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these ids (timestamp, partition, offset) are among them."""
        if not self:
            return np.zeros(len(ids), np.bool_)
        names = names_of(ids)
        places = np.minimum(np.searchsorted(self._names, names), self._names.size - 1)
        found: NDArray[np.bool_] = self._names[places] == names
        return found


def ids_of(batch: pyarrow.RecordBatch) -> NDArray[np.int64]:
    """The ids of rows of a corpus."""
    return np.stack([batch.column(name).to_numpy(zero_copy_only=False) for name in _ID], axis=1)


def sketches_left(corpus: Corpus, files: Sequence[CorpusFile], left_out: LeftOut) -> dict[bytes, bytes]:
    """Checksum of the tokens -> sketch, of the forgotten documents in files whose copies stay there without one.

    A copy has no sketch because its first document has it: were that merely left out, nobody would be near the copy any
    more. Reads the files twice. Takes a sketch for each such document, some 100 bytes for each copy.
    """
    if not left_out:
        return {}
    heirs = set()
    for tokens, _ in _rows(corpus, files, left_out, gone=False, sketched=False):
        heirs.add(tokens)
    return {
        tokens: sketch for tokens, sketch in _rows(corpus, files, left_out, gone=True, sketched=True) if tokens in heirs
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
    corpus: Corpus, files: Sequence[CorpusFile], left_out: LeftOut, *, gone: bool, sketched: bool
) -> Iterator[tuple[bytes, bytes]]:
    """(checksum of the tokens, sketch) of rows that are forgotten or not, with a sketch or without."""
    for file in files:
        for batch in corpus.read(file, (*_ID, "tokens", "sketch")):
            rows = batch.filter(pyarrow.array(left_out.among(ids_of(batch)) == gone))
            pairs = zip(rows.column("tokens").to_pylist(), rows.column("sketch").to_pylist(), strict=True)
            yield from (pair for pair in pairs if bool(pair[1]) == sketched)
