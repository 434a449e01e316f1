"""A directory on a sorted run: the positions of the keys with given leading bits.

It takes one byte per value of the leading bits (see kernels/index/locating), so it can afford as many values as there
are keys. Half of all probes then end in the directory, and the others read one cache line of the run. With four-byte
positions there would be a quarter as many values in the same memory, and a probe would take 1.5 times as long.
"""

import numpy as np
from numpy.typing import NDArray

from neardup.index.lsm.array_pool import ArrayPool
from neardup.kernels.common.plain import plain
from neardup.kernels.index.locating import Directory, extend_directory

_LEAST_BITS = 4  # with fewer bits a directory would have one word, as it does without any


class KeyDirectory:
    """A directory on the `bits` bits that follow the first `skip` bits, which all keys share."""

    def __init__(self, words: NDArray[np.uint64], skip: int) -> None:
        self.words, self.skip = words, skip
        self.bits = words.size.bit_length() + 2 if words.size > 2 else 0
        self.entries = plain(Directory(words, skip, self.bits))
        self._filled = 0

    @classmethod
    def empty(cls, size: int, skip: int, leading: int = 64, pool: ArrayPool | None = None) -> "KeyDirectory":
        """Return an empty directory for `size` keys and lookups of at least `leading` bits.

        Call `extend` over all keys before the first lookup.
        """
        # One or two values per key, so at most two bytes per key.
        bits = min(size.bit_length(), leading - skip)
        words = (1 << bits - 3 if bits >= _LEAST_BITS else 1) + 1
        return cls(np.empty(words, np.uint64) if pool is None else pool.array(words, np.uint64), skip)

    @classmethod
    def of(cls, keys: NDArray[np.uint64], skip: int) -> "KeyDirectory":
        """Return the directory of keys that are in rising order."""
        made = cls.empty(keys.size, skip)
        made.extend(keys, 0, keys.size)
        return made

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return int(self.words.nbytes)

    def extend(self, keys: NDArray[np.uint64], start: int, stop: int) -> None:
        """Add keys[start:stop]. `start` is the `stop` of the call before."""
        self._filled = extend_directory(keys, start, stop, self.skip, self.bits, self.words, self._filled)
