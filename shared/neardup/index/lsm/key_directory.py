"""Where in a sorted run the keys with given leading bits stand.

A byte a value of the leading bits (see kernels/locating), so there can be as many values as keys: half of all probes
learn from the directory that there is nothing to read, the others read one cache line of the table. With a position of
four bytes each, a quarter as many values, a probe takes half as long again.
"""

import numpy as np
from numpy.typing import NDArray

from neardup.index.lsm.array_pool import ArrayPool
from neardup.kernels.common.plain import plain
from neardup.kernels.index.locating import Directory, extend_directory

_LEAST_BITS = 4  # fewer have one word, as none have


class KeyDirectory:
    """Of the `bits` bits behind the first `skip` ones, which all keys share."""

    def __init__(self, words: NDArray[np.uint64], skip: int) -> None:
        self.words, self.skip = words, skip
        self.bits = words.size.bit_length() + 2 if words.size > 2 else 0
        self.entries = plain(Directory(words, skip, self.bits))
        self._filled = 0

    @classmethod
    def empty(cls, size: int, skip: int, leading: int = 64, spares: ArrayPool | None = None) -> "KeyDirectory":
        """For that many keys, asked for `leading` bits or more: `extend` over all of them before it is used."""
        # A value or two a key: at most 2 bytes.
        bits = min(size.bit_length(), leading - skip)
        words = (1 << bits - 3 if bits >= _LEAST_BITS else 1) + 1
        return cls(np.empty(words, np.uint64) if spares is None else spares.array(words, np.uint64), skip)

    @classmethod
    def of(cls, keys: NDArray[np.uint64], skip: int) -> "KeyDirectory":
        """Of these keys, in rising order."""
        made = cls.empty(keys.size, skip)
        made.extend(keys, 0, keys.size)
        return made

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return int(self.words.nbytes)

    def extend(self, keys: NDArray[np.uint64], start: int, stop: int) -> None:
        """Enter keys[start:stop], on from the last stop."""
        self._filled = extend_directory(keys, start, stop, self.skip, self.bits, self.words, self._filled)
