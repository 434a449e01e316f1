"""Child processes that end with their parent, and ignore stop signals meant for it.

The parent starts a child in `without_signals`, and the child begins with `belong_to`:

    with without_signals():
        ...                         # the parent starts the child

    belong_to(parent)               # the first call in the child
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
    """Block stop signals: child processes started inside stay blocked until `belong_to`, this process until the end."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def belong_to(parent: int) -> None:
    """Ignore the stop signals of the parent's process group, and end when the parent is gone.

    Ctrl-C and the stop signals of many supervisors reach every process of a group. The parent stops its children itself
    when their work is done. Signals that arrived before this call were meant for the parent as well.
    """
    os.setpgid(0, 0)
    for stop in _STOPS:
        signal.signal(stop, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)
    # A broken process pool ends its processes with SIGTERM.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """End this process when its parent is gone: a killed parent cannot end its children."""
    while os.getppid() == parent:
        time.sleep(_WATCH_SECONDS)
    os._exit(1)
