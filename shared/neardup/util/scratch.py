"""Reusable buffers for each thread, and the salt of hash tables. No result depends on either.

Allocating new memory for each page would take longer than processing the page.
"""

import secrets
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

SALT = np.uint64(secrets.randbits(64) | 1)
"""A random odd number, different in each process, for the hash tables of the kernels."""

_KEPT_BYTES = 64 * 2**20
"""Maximum size of a buffer that is kept. Only very large pages need larger buffers, which are not kept."""


class _Buffers(threading.local):
    def __init__(self) -> None:
        self.by_name: dict[str, NDArray[Any]] = {}


class Scratch:
    """Named buffers, separate for each thread."""

    def __init__(self) -> None:
        self._buffers = _Buffers()

    def room(self, name: str, size: int, dtype: type[np.generic]) -> NDArray[Any]:
        """Return an uninitialized buffer of `size` elements or more, valid until the thread's next call for `name`."""
        buffers = self._buffers.by_name
        buffer = buffers.get(name)
        if buffer is None or buffer.size < size:
            buffer = np.empty(size + size // 2, dtype=dtype)
            if buffer.nbytes <= _KEPT_BYTES:
                buffers[name] = buffer
        return buffer
