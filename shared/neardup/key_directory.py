"""Where in a sorted run the keys with given leading bits stand.

Entries are positions of 32 bits. Smaller ones (a base for sixteen and a byte each) were tried: they are a third of the
size, but two reads a probe, which costs more than the cache saves.
"""

import numpy as np
from numpy.typing import NDArray

from neardup.kernels.locating import extend_directory


class KeyDirectory:
    """Entries for the `bits` bits behind the first `skip` ones, which all keys share (see kernels/locating)."""

    def __init__(self, entries: NDArray[np.uint32], skip: int) -> None:
        self.entries, self.skip = entries, skip
        self.bits = (entries.size - 1).bit_length() - 1
        self._filled = 0

    @classmethod
    def empty(cls, size: int, skip: int) -> "KeyDirectory":
        """For that many keys: `extend` over all of them before it is used."""
        # Two to four keys an entry: at most 2 bytes a key, and a probe reads one cache line of the table or two.
        bits = max(1, min(size.bit_length() - 2, 62 - skip))
        return cls(np.empty((1 << bits) + 1, np.uint32), skip)

    @classmethod
    def of(cls, keys: NDArray[np.uint64], skip: int) -> "KeyDirectory":
        """Of these keys, in rising order."""
        made = cls.empty(keys.size, skip)
        made.extend(keys, 0, keys.size)
        return made

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return int(self.entries.nbytes)

    def extend(self, keys: NDArray[np.uint64], start: int, stop: int) -> None:
        """Enter keys[start:stop], on from the last stop."""
        self._filled = extend_directory(keys, start, stop, self.skip, self.bits, self.entries, self._filled)
