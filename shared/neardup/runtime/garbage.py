"""Python's collector of cycles, set for a process that works through a stream.

By itself it looks through young objects after so many new ones, less those that were freed, and from time to time
through all. An owner whose memory is full frees an old document for every new one: nothing is counted, the young grow
to hundreds of thousands, and when they are looked through at last, every page waits a second and more. So here they are
looked through by the clock, few at a time. A stream makes many objects and hardly any cycles, and what it needs no more
is freed without the collector: all of them are looked through once an hour, if so many are new.
"""

import gc
import threading
import time
from typing import Final

_YOUNG: Final = 50_000
_MIDDLE: Final = 20
_LOOK_SECONDS: Final = 0.25
_OLD: Final = int(3600 / _LOOK_SECONDS)
"""Looks at young objects before one at all."""


def collect_seldom() -> None:
    """For the whole process: for commands and processes of our own, not for a library's user."""
    gc.collect()
    # What was imported stays: it need not be looked at again.
    gc.freeze()
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
    threading.Thread(target=_look_by_the_clock, name="garbage", daemon=True).start()


def _look_by_the_clock() -> None:
    while True:
        time.sleep(_LOOK_SECONDS)
        # Young and middle: what is left counts as old, and is not looked at again and again.
        gc.collect(1)
