"""Size of a msgpack message in items, before it is decoded. A decoded item takes many times its encoded bytes."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

_SMALL_MAP, _SMALL_LIST, _SMALL_TEXT = 0x80, 0x90, 0xA0
_NIL, _NOTHING, _LIST_16, _MAP_16, _SMALL_NEGATIVE = 0xC0, 0xC1, 0xDC, 0xDE, 0xE0
_LENGTH_BYTES = np.array(
    [0, 0, 0, 0, 1, 2, 4, 1, 2, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 2, 4, 2, 4], np.int64
)
"""Number of length bytes that follow the first byte of an item, for first bytes from _NIL on."""
_OTHER_BYTES = np.array(
    [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 2, 3, 5, 9, 17, 0, 0, 0, 0, 0, 0, 0], np.int64
)
"""Number of bytes that follow in addition to the length: a number, the type of an extension, or a short extension."""


@njit(nogil=True, cache=True)
def announced_items(data: NDArray[np.uint8]) -> int:
    """Return the number of items that the headers of lists and maps announce, including nested ones.

    An entry of a map counts as two items. Announced items count even if they are missing from the message, because a
    decoder allocates memory for them when it reads the header. Text, bytes and extensions are skipped. Counting stops
    at the end of the data or at a byte that is not valid msgpack.
    """
    total = np.int64(0)
    place = np.int64(0)
    while place < data.size:
        first = np.int64(data[place])
        place += 1
        if first < _SMALL_MAP or first >= _SMALL_NEGATIVE:
            continue
        if first < _SMALL_LIST:
            total += 2 * (first - _SMALL_MAP)
        elif first < _SMALL_TEXT:
            total += first - _SMALL_LIST
        elif first < _NIL:
            place += first - _SMALL_TEXT
        else:
            length_bytes = _LENGTH_BYTES[first - _NIL]
            if first == _NOTHING or place + length_bytes > data.size:
                break
            length = np.int64(0)
            for i in range(length_bytes):
                length = length << 8 | np.int64(data[place + i])
            place += length_bytes + _OTHER_BYTES[first - _NIL]
            if first >= _MAP_16:
                total += 2 * length
            elif first >= _LIST_16:
                total += length
            else:
                place += length
    return total
