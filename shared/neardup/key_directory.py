"""Where in a sorted run the keys with given leading bits stand: two small arrays, about 1.25 bytes an entry."""

import numpy as np
from numpy.typing import NDArray

from neardup.kernels.locating import GROUP, extend_directory


class KeyDirectory:
    """Entries for the `bits` bits behind the first `skip` ones, which all keys share (see kernels/locating)."""

    def __init__(self, bases: NDArray[np.uint32], offsets: NDArray[np.uint8], skip: int) -> None:
        self.bases, self.offsets, self.skip = bases, offsets, skip
        self.bits = (offsets.size - 1).bit_length() - 1
        self._filled = 0

    @classmethod
    def empty(cls, size: int, skip: int) -> "KeyDirectory":
        """For that many keys: `extend` over all of them before it is used."""
        # Two to four keys an entry: a probe reads one cache line of the table, sometimes two.
        bits = max(4, min(size.bit_length() - 2, 62 - skip))
        return cls(np.empty((1 << bits) // GROUP + 2, np.uint32), np.empty((1 << bits) + 1, np.uint8), skip)

    @classmethod
    def of(cls, keys: NDArray[np.uint64], skip: int) -> "KeyDirectory":
        """Of these keys, in rising order."""
        made = cls.empty(keys.size, skip)
        made.extend(keys, 0, keys.size)
        return made

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return int(self.bases.nbytes + self.offsets.nbytes)

    def extend(self, keys: NDArray[np.uint64], start: int, stop: int) -> None:
        """Enter keys[start:stop], on from the last stop."""
        self._filled = extend_directory(
            keys, start, stop, self.skip, self.bits, self.bases, self.offsets, self._filled
        )  # fmt: skip
