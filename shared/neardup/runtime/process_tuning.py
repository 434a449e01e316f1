"""Garbage collector and allocator settings for a process that works through a stream.

Garbage collector: CPython starts a young collection when allocations minus deallocations exceed a threshold. An
aggregator with a full cache frees an old document for every new one, so the difference stays near zero, hundreds of
thousands of young objects accumulate, and the collection that comes at last pauses the aggregator for more than a
second. Therefore young objects are collected on a timer, a few at a time. Full collections become rare (about one per
hour), because a stream creates hardly any reference cycles.

Allocator: each batch of pages needs some buffers of many megabytes for a moment. By default glibc returns them to the
operating system, which has to zero and map every memory page again for the next batch. With these settings glibc keeps
up to 64 MiB.
"""

import ctypes
import gc
import sys
import threading
import time
from typing import Final

_YOUNG_OBJECTS: Final = 50_000
_YOUNG_COLLECTIONS: Final = 20
_COLLECT_SECONDS: Final = 0.25
_MIDDLE_COLLECTIONS: Final = int(3600 / _COLLECT_SECONDS)
"""Collections of the middle generation between two full ones."""

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_TRIM_BYTES: Final = 64 * 2**20
"""Free memory at the end of the heap above this size is returned to the operating system."""
_MMAP_BYTES: Final = 32 * 2**20
"""Larger blocks are mapped separately and returned when they are freed. glibc accepts no higher limit."""


def tune_process() -> None:
    """Set the garbage collector and the allocator for the whole process.

    For commands and for child processes of the library. The library never calls this in a user's process. The allocator
    is set only where the C library is glibc.
    """
    _collect_on_a_timer()
    _keep_freed_memory()


def _collect_on_a_timer() -> None:
    gc.collect()
    # Imported modules live as long as the process: exclude their objects from all collections.
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, _YOUNG_COLLECTIONS, _MIDDLE_COLLECTIONS)
    threading.Thread(target=_collect_forever, name="garbage-collector", daemon=True).start()


def _collect_forever() -> None:
    while True:
        time.sleep(_COLLECT_SECONDS)
        # The young and the middle generation: survivors become old and are not scanned by the next call.
        gc.collect(1)


def _keep_freed_memory() -> None:
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(_M_TRIM_THRESHOLD, _TRIM_BYTES)
        mallopt(_M_MMAP_THRESHOLD, _MMAP_BYTES)
