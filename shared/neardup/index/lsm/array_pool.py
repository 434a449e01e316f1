"""Memory of dropped arrays, kept for the next ones: merges write runs over and over, each a little larger.

Memory that is new to a process is dear at its first write: `np.empty` asks for huge pages, and where memory is in
pieces the system makes 2 MB in a row free while the batch waits; small pages cost more than merging into them. Giving
a large run back at once also takes longer than a batch. So arrays are mapped with room to grow in, used again, and what
is not used again is given back little by little.
"""

import mmap
import weakref
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

LEAST_BYTES: Final = 1 << 18
"""Smaller arrays are left to the allocator."""
_STEP_BYTES: Final = 1 << 17
"""Given back at once: a call of the system for every small batch would take longer than the batch."""
_PAGE: Final = mmap.PAGESIZE


class _Mapping:
    """Memory for one array at a time. The first `touched` bytes may take memory, the others do not."""

    def __init__(self, nbytes: int) -> None:
        # A power of two: what was not written to is not there, and costs nothing.
        self.room = 1 << (nbytes - 1).bit_length()
        self.touched = 0
        self.memory = mmap.mmap(-1, self.room, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)

    def give_back(self, nbytes: int) -> int:
        """As many bytes from the end of what was touched; how many it were."""
        start = max(0, self.touched - nbytes) // _PAGE * _PAGE
        given = self.touched - start
        self.memory.madvise(mmap.MADV_DONTNEED, start, given)
        self.touched = start
        return given


class ArrayPool:
    """Not thread-safe. An array's memory comes back here when nobody refers to the array or a part of it any more.

    That may be in another thread, which has written a snapshot: it only appends to what is idle.
    """

    def __init__(self) -> None:
        self._idle: list[_Mapping] = []
        self._owed = 0

    @property
    def nbytes(self) -> int:
        """Bytes of memory that no array uses."""
        return sum(mapping.touched for mapping in self._idle)

    def array(self, size: int, dtype: type[np.generic]) -> NDArray[Any]:
        """`size` elements, with anything in them."""
        nbytes = size * np.dtype(dtype).itemsize
        if nbytes < LEAST_BYTES:
            return np.empty(size, dtype)
        mapping = self._fitting(nbytes)
        mapping.touched = max(mapping.touched, nbytes)
        made = np.frombuffer(mapping.memory, dtype, size)
        # Every part of it refers to `made`, so the memory is not used again too early.
        weakref.finalize(made, self._idle.append, mapping).atexit = False
        return made

    def give_back(self, nbytes: int) -> None:
        """So many bytes of what was not used for longest, where there are, now or with a later call."""
        self._owed += nbytes
        if self._owed < _STEP_BYTES:
            return
        nbytes, self._owed = self._owed, 0
        while nbytes > 0 and self._idle:
            nbytes -= self._idle[0].give_back(nbytes)
            if not self._idle[0].touched:
                del self._idle[0]

    def _fitting(self, nbytes: int) -> _Mapping:
        """One that has room and no more than twice the memory, or a new one."""
        fitting = [each for each in self._idle if each.touched // 2 <= nbytes <= each.room]
        if not fitting:
            return _Mapping(nbytes)
        best = max(fitting, key=lambda each: min(each.touched, nbytes))
        self._idle.remove(best)
        return best
