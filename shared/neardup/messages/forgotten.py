"""What owners have forgotten, as they tell it on the documents topic: the offline pass is to forget it, too.

Documents by their ids, not urls or times: a page that came after the order, or late, is not forgotten.
"""

from array import array
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.errors import Corrupt
from neardup.messages import wire

_MOST: Final = 1 << 14
"""Documents in a message."""


class Forgotten(NamedTuple):
    """Documents, as rows (timestamp, partition, offset)."""

    documents: NDArray[np.int64]


NOTHING: Final = Forgotten(np.empty((0, 3), np.int64))


def together(parts: Iterable[Forgotten]) -> Forgotten:
    """All that any of them says."""
    return Forgotten(np.concatenate([each.documents for each in (NOTHING, *parts)]))


def write_forgotten(numbers: "array[int]") -> Iterator[bytes]:
    """Messages of at most 400 KB, of ids one after the other; there may be millions."""
    ids = np.array(numbers, np.int64).reshape(-1, 3)
    for start in range(0, len(ids), _MOST):
        yield wire.encode("forgotten", {"id": ids[start : start + _MOST]})


def forgotten_of(body: dict[str, Any]) -> Forgotten:
    """The body of a message. Raises Corrupt."""
    ids = body.get("id")
    if not isinstance(ids, np.ndarray) or ids.dtype != np.int64 or ids.shape[1:] != (3,):
        raise Corrupt(f"expected the ids of forgotten documents, three numbers each, got {type(ids).__name__}")
    return Forgotten(ids)
