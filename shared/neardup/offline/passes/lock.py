"""A lock that admits one pass at a time to a results directory, for both engines."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from neardup.errors import StateError

LOCK: Final = "lock"


@contextmanager
def exclusive_pass(work: Path) -> Iterator[None]:
    """Hold the lock of a results directory. Raises StateError if another pass holds it.

    The lock is also released when the process ends.
    """
    work.mkdir(parents=True, exist_ok=True)
    with (work / LOCK).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StateError(
                f"{work}: expected to be the only pass in this directory, got a second one: wait for the other to end"
            ) from error
        yield
