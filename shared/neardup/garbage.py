"""Python's collector of cycles, set for a process that works through a stream.

It looks through young objects after every few hundred new ones, and from time to time through all: for an owner with
its documents in memory that is a tenth of its time, and pauses that readers of verdicts notice. A stream makes many
objects and hardly any cycles, and what it needs no more is freed without the collector.
"""

import gc
from typing import Final

_YOUNG: Final = 50_000
_MIDDLE: Final = 20
_OLD: Final = 100


def collect_seldom() -> None:
    """For the whole process: for commands and processes of our own, not for a library's user."""
    gc.collect()
    # What was imported stays: it need not be looked at again.
    gc.freeze()
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
