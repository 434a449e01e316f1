"""What owners have forgotten, as they tell it on the documents topic: the offline pass is to forget it, too."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup import wire
from neardup.errors import Corrupt
from neardup.types import DocumentId

LONG_AGO: Final = -(2**63)
"""Before any page."""
_MOST: Final = 1 << 14
"""Documents in a message."""


class Forgotten(NamedTuple):
    """These documents, as rows (timestamp, partition, offset), and all whose page came before a time."""

    documents: NDArray[np.int64]
    before: int

    def __bool__(self) -> bool:
        """Whether there may be one."""
        return len(self.documents) > 0 or self.before > LONG_AGO


NOTHING: Final = Forgotten(np.empty((0, 3), np.int64), LONG_AGO)


def together(parts: Iterable[Forgotten]) -> Forgotten:
    """All that any of them says."""
    parts = [NOTHING, *parts]
    return Forgotten(np.concatenate([each.documents for each in parts]), max(each.before for each in parts))


def write_forgotten(documents: Sequence[DocumentId], before: int = LONG_AGO) -> Iterator[bytes]:
    """Messages of at most 400 KB; none if nothing is forgotten."""
    ids = np.array(documents, np.int64).reshape(-1, 3)
    if Forgotten(ids, before):
        for start in range(0, max(1, len(ids)), _MOST):
            yield wire.encode("forgotten", {"id": ids[start : start + _MOST], "before": before})


def forgotten_of(body: dict[str, Any]) -> Forgotten:
    """The body of a message. Raises Corrupt."""
    ids, before = body.get("id"), body.get("before")
    if not isinstance(ids, np.ndarray) or ids.dtype != np.int64 or ids.shape[1:] != (3,):
        raise Corrupt(f"expected the ids of forgotten documents, three numbers each, got {type(ids).__name__}")
    if type(before) is not int or not LONG_AGO <= before < 2**63:
        raise Corrupt(f"expected the time before which all is forgotten, got {before!r}")
    return Forgotten(ids, before)
