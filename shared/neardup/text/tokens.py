"""Canonical tokens: the same for two pages that differ only in formatting, case or the spelling of characters."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.kernels.text.tokenizing import MAX_NGRAM, tokenize
from neardup.text.unicode_tables import tables
from neardup.util.scratch import Scratch

UNLIMITED: Final = 2**31 - 1
_scratch = Scratch()


@dataclass(frozen=True, slots=True)
class Tokens:
    """A document's tokens in order: their hashes and, until the thread reads its next page, their bytes.

    The first half of `places` contains the position in `canonical` at which each token starts, the second half the
    position at which it ends.
    """

    hashes: NDArray[np.uint64]
    canonical: NDArray[np.uint8]
    places: NDArray[np.int32]
    cut: bool

    def __len__(self) -> int:
        return self.hashes.size

    def word(self, i: int) -> str:
        """Return the i-th token as text."""
        start, end = self.places[i], self.places[self.places.size // 2 + i]
        return self.canonical[start:end].tobytes().decode()

    def words(self) -> list[str]:
        """Return all tokens as text. This is a Python loop, for output and tests but not for the hot path."""
        return [self.word(i) for i in range(len(self))]


def tokens_of(utf8: NDArray[np.uint8], *, character_ngram: int = 2, limit: int = UNLIMITED) -> Tokens:
    """Cut UTF-8 text into at most `limit` tokens. Raises nothing, whatever the bytes are."""
    assert 1 <= character_ngram <= MAX_NGRAM
    assert 0 <= limit <= UNLIMITED
    known = tables()
    room = utf8.size
    while True:
        out = _scratch.room("canonical", room + room // 2 + 512, np.uint8)
        places = _scratch.room("places", room + 1024, np.int32)
        hashes, count = tokenize(utf8, known.stage1, known.stage2, known.mapping, character_ngram, limit, out, places)
        if count >= 0:
            return Tokens(hashes, out, places, count > limit)
        room = 2 * room + 512


def tokens_of_text(text: str, *, character_ngram: int = 2) -> Tokens:
    """Return the tokens of a string."""
    return tokens_of(np.frombuffer(text.encode("utf-8", "replace"), dtype=np.uint8), character_ngram=character_ngram)
