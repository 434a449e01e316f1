"""A process that works for another one: it ends when that one says so or is gone, and by no signal meant for that one.

with without_signals():
    ...                         the parent starts it
belong_to(parent)               the first thing that it does itself
"""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_STOPS: Final = (signal.SIGINT, signal.SIGTERM)
_WATCH_SECONDS: Final = 2.0


@contextmanager
def without_signals() -> Iterator[None]:
    """Processes started in here hear of no stop before `belong_to`; this one does afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def belong_to(parent: int) -> None:
    """Ctrl-C, and many a supervisor's stop, go to every process of a group; the parent ends this one when its work is
    done. What came before this was meant for the parent, too."""
    os.setpgid(0, 0)
    for stop in _STOPS:
        signal.signal(stop, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)
    # A pool that breaks ends its processes by this one.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """A killed parent cannot end its processes."""
    while os.getppid() == parent:
        time.sleep(_WATCH_SECONDS)
    os._exit(1)
