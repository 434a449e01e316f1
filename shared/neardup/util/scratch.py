"""What kernels work with and no result depends on: buffers that a thread uses again for every page, and a salt.

Fresh memory for each page would cost more than the work on it.
"""

import secrets
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

SALT = np.uint64(secrets.randbits(64) | 1)
"""For the kernels' hash tables. Another one in every process; no result depends on it."""

_KEPT_BYTES = 64 * 2**20
"""A buffer that one huge page needed is not kept."""


class _Buffers(threading.local):
    def __init__(self) -> None:
        self.by_name: dict[str, NDArray[Any]] = {}


class Scratch:
    """Each thread sees its own buffers."""

    def __init__(self) -> None:
        self._buffers = _Buffers()

    def room(self, name: str, size: int, dtype: type[np.generic]) -> NDArray[Any]:
        """At least `size` elements, with whatever was left in them. Valid until the thread asks for `name` again."""
        buffers = self._buffers.by_name
        buffer = buffers.get(name)
        if buffer is None or buffer.size < size:
            buffer = np.empty(size + size // 2, dtype=dtype)
            if buffer.nbytes <= _KEPT_BYTES:
                buffers[name] = buffer
        return buffer
