"""Canonical tokens: the same for two pages that differ only in formatting, case or the spelling of characters."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.character_tables import tables
from neardup.kernels.murmur import hash_tokens
from neardup.kernels.tokenizing import MAX_NGRAM, tokenize
from neardup.scratch import Scratch

UNLIMITED: Final = 2**31 - 1
_scratch = Scratch()


@dataclass(frozen=True, slots=True)
class Tokens:
    """A document's tokens in order: their hashes and, while the thread reads no other page, their bytes."""

    hashes: NDArray[np.uint64]
    canonical: NDArray[np.uint8]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    cut: bool

    def __len__(self) -> int:
        return self.hashes.size

    def word(self, i: int) -> str:
        """The i-th token as text."""
        return self.canonical[self.starts[i] : self.ends[i]].tobytes().decode()

    def words(self) -> list[str]:
        """All tokens as text. A Python loop: for people and tests, not for the hot path."""
        return [self.word(i) for i in range(len(self))]


def tokens_of(utf8: NDArray[np.uint8], *, character_ngram: int = 2, limit: int = UNLIMITED) -> Tokens:
    """Cut UTF-8 text into at most `limit` tokens. Raises nothing, whatever the bytes are."""
    assert 1 <= character_ngram <= MAX_NGRAM
    assert 0 <= limit <= UNLIMITED
    known = tables()
    size = utf8.size
    while True:
        out = _scratch.room("canonical", size + size // 2 + 512, np.uint8)
        starts = _scratch.room("starts", size // 2 + 512, np.int32)
        ends = _scratch.room("ends", size // 2 + 512, np.int32)
        count, used = tokenize(
            utf8,
            known.stage1,
            known.stage2,
            known.mapping,
            known.folded,
            character_ngram,
            limit,
            out,
            starts,
            ends,
        )
        if count >= 0:
            break
        size = 2 * size + 512
    kept = min(count, limit)
    starts, ends = starts[:kept], ends[:kept]
    return Tokens(hash_tokens(out, starts, ends), out[:used], starts, ends, count > limit)


def tokens_of_text(text: str, *, character_ngram: int = 2) -> Tokens:
    """The tokens of a string."""
    return tokens_of(np.frombuffer(text.encode("utf-8", "replace"), dtype=np.uint8), character_ngram=character_ngram)
