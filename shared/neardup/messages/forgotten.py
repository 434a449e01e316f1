"""Documents that owners have forgotten, reported on the documents topic so that the offline pass forgets them, too.

The message lists document ids instead of urls or times, so a page of the same url that arrives after the order is kept.
"""

from array import array
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.errors import Corrupt
from neardup.messages import wire
from neardup.messages.wire import Body, Schema

FORGOTTEN: Final = Schema("forgotten", 1)
_MOST: Final = 1 << 14
"""Maximum number of documents in a message."""


class Forgotten(NamedTuple):
    """Forgotten documents, as rows (timestamp, partition, offset)."""

    documents: NDArray[np.int64]


NOTHING: Final = Forgotten(np.empty((0, 3), np.int64))


def together(parts: Iterable[Forgotten]) -> Forgotten:
    """Concatenate the rows of several parts."""
    return Forgotten(np.concatenate([each.documents for each in (NOTHING, *parts)]))


def write_forgotten(numbers: "array[int]") -> Iterator[bytes]:
    """Yield messages of at most 400 KB. `numbers` holds three numbers per document, possibly millions of documents."""
    ids = np.array(numbers, np.int64).reshape(-1, 3)
    for start in range(0, len(ids), _MOST):
        yield wire.encode(FORGOTTEN, {"id": ids[start : start + _MOST]})


def forgotten_of(body: Body) -> Forgotten:
    """Read the body of a message. Raises Corrupt."""
    ids = body.get("id")
    if not isinstance(ids, np.ndarray) or ids.dtype != np.int64 or ids.shape[1:] != (3,):
        raise Corrupt(f"expected the ids of forgotten documents, three numbers each, got {type(ids).__name__}")
    return Forgotten(ids)
