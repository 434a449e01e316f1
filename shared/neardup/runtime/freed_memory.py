"""What the C library does with freed memory, set for a process that works through a stream.

Every fetch of pages takes some buffers of many megabytes, and gives them back a moment later. By itself glibc returns
them to the system, which has to clear and map every page of memory again for the next fetch.
"""

import ctypes
import sys
from typing import Final

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_KEPT_BYTES: Final = 64 * 2**20
"""Freed memory beyond this goes back to the system."""
_LARGE_BYTES: Final = 32 * 2**20
"""Larger blocks are mapped, and returned when they are freed; glibc takes no higher limit."""


def keep_freed_memory() -> None:
    """For the whole process: for commands and processes of our own, not for a library's user.

    Does nothing where the C library is another one.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_MMAP_THRESHOLD, _LARGE_BYTES)
