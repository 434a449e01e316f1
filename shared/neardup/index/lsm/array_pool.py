"""A pool of memory for large arrays. Merges write one run after the other, each a little larger than the last.

First writes to fresh memory are expensive. `np.empty` requests huge pages, and when physical memory is fragmented, the
OS compacts 2 MB at a time while the batch waits. With small pages, page faults take longer than the merge that writes
the pages. Returning a large run to the OS at once also takes longer than a batch. Therefore arrays are memory-mapped
with room to grow, their memory is reused, and memory that is not reused is returned in small steps.
"""

import mmap
import weakref
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

LEAST_BYTES: Final = 1 << 18
"""Minimum size of an array in the pool. Smaller arrays are created by the allocator."""
_STEP_BYTES: Final = 1 << 17
"""Minimum number of bytes returned per system call. A call per small batch would take longer than the batch."""
_PAGE: Final = mmap.PAGESIZE


class _Mapping:
    """A memory mapping for one array at a time. Only the first `touched` bytes may occupy physical memory."""

    def __init__(self, nbytes: int) -> None:
        # Rounded up to a power of two: pages that are never written occupy no memory.
        self.room = 1 << (nbytes - 1).bit_length()
        self.touched = 0
        self.memory = mmap.mmap(-1, self.room, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)

    def release(self, nbytes: int) -> int:
        """Return up to `nbytes` from the end of the touched range to the OS; return the number of bytes released."""
        start = max(0, self.touched - nbytes) // _PAGE * _PAGE
        given = self.touched - start
        self.memory.madvise(mmap.MADV_DONTNEED, start, given)
        self.touched = start
        return given


class ArrayPool:
    """A pool of memory mappings. Not thread-safe.

    The memory of an array returns to the pool when the last reference to the array or a view of it is dropped. This may
    happen in another thread, such as the one that writes a snapshot; it only appends to the list of idle mappings.
    """

    def __init__(self) -> None:
        self._idle: list[_Mapping] = []
        self._owed = 0

    @property
    def nbytes(self) -> int:
        """Bytes of physical memory that no array uses."""
        return sum(mapping.touched for mapping in self._idle)

    def array(self, size: int, dtype: type[np.generic]) -> NDArray[Any]:
        """Return an uninitialized array of `size` elements."""
        nbytes = size * np.dtype(dtype).itemsize
        if nbytes < LEAST_BYTES:
            return np.empty(size, dtype)
        mapping = self._fitting(nbytes)
        mapping.touched = max(mapping.touched, nbytes)
        made = np.frombuffer(mapping.memory, dtype, size)
        # Views of the array refer to `made`, so the memory is not reused while a view exists.
        weakref.finalize(made, self._idle.append, mapping).atexit = False
        return made

    def release(self, nbytes: int) -> None:
        """Return `nbytes` of the longest idle memory to the OS, now or in a later call. There may be less."""
        self._owed += nbytes
        if self._owed < _STEP_BYTES:
            return
        nbytes, self._owed = self._owed, 0
        while nbytes > 0 and self._idle:
            nbytes -= self._idle[0].release(nbytes)
            if not self._idle[0].touched:
                del self._idle[0]

    def _fitting(self, nbytes: int) -> _Mapping:
        """Return an idle mapping with enough room and at most twice the memory, or a new one."""
        fitting = [each for each in self._idle if each.touched // 2 <= nbytes <= each.room]
        if not fitting:
            return _Mapping(nbytes)
        best = max(fitting, key=lambda each: min(each.touched, nbytes))
        self._idle.remove(best)
        return best
