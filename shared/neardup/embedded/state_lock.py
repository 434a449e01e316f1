"""A lock that admits one user at a time to the state directory of an embedded run.

    <state>/lock     locked with flock while the directory is in use; holds the number of the process

The kernel releases the lock when the process ends, however it ends. The file stays, because removing it would let two
processes lock two files of the same name.
"""

import fcntl
import os
from pathlib import Path
from typing import Final, Self

from neardup.errors import StateInUse, StateUnavailable

FILE: Final = "lock"


class StateLock:
    """Exclusive use of a state directory. Use as a context manager.

    Entering creates the directory if necessary. It raises StateInUse if the directory is in use, also by this process,
    and StateUnavailable if it cannot be written. Only commands that write need the lock: reading is always allowed.
    """

    def __init__(self, state: Path) -> None:
        self._state = state
        self._file = -1

    def __enter__(self) -> Self:
        try:
            self._state.mkdir(parents=True, exist_ok=True)
            file = os.open(self._state / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise StateUnavailable(f"{self._state}: expected a directory that can be written: {error}") from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(file, 0)
            os.pwrite(file, b"%d\n" % os.getpid(), 0)
        except BlockingIOError as error:
            raise StateInUse(self._refusal(os.pread(file, 32, 0))) from error
        except OSError as error:
            raise StateUnavailable(f"{self._state}: cannot lock {FILE}: {error}") from error
        else:
            self._file, file = file, -1
        finally:
            if file >= 0:
                os.close(file)
        return self

    def __exit__(self, *error: object) -> None:
        os.ftruncate(self._file, 0)  # the number must not outlive the use
        os.close(self._file)
        self._file = -1

    def _refusal(self, holder: bytes) -> str:
        other = "or use another state directory"
        if not holder.strip().isdigit():  # between locking and writing
            return f"{self._state}: already in use by another process: wait until it ends, {other}"
        if int(holder) == os.getpid():
            return f"{self._state}: already in use by this process ({int(holder)}): close it there first, {other}"
        return f"{self._state}: already in use by process {int(holder)}: wait until it ends, {other}"
