"""Who owns a fingerprint: the inbox partition whose directory holds its documents."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

# 2^64 / golden ratio: fingerprints of similar pages differ in few bits and should still spread.
_MIX: Final = 0x9E3779B97F4A7C15
_WORD: Final = 2**64 - 1


def owner_of(fingerprint: int, owners: int) -> int:
    """The owner of a fingerprint."""
    return ((fingerprint * _MIX & _WORD) >> 32) * owners >> 32


def owners_of(fingerprints: NDArray[np.uint64], owners: int) -> NDArray[np.int64]:
    """The owner of each fingerprint."""
    mixed = (fingerprints * np.uint64(_MIX)) >> np.uint64(32)
    return ((mixed * np.uint64(owners)) >> np.uint64(32)).astype(np.int64)


def owners_among(fingerprints: NDArray[np.uint64], owners: int) -> list[int]:
    """The owners of any of these fingerprints, in rising order."""
    if owners == 1:
        return [0] if fingerprints.size else []
    found: list[int] = np.bincount(owners_of(fingerprints, owners)).nonzero()[0].tolist()
    return found


def rows_by_owner(fingerprints: NDArray[np.uint64], owners: int) -> list[tuple[int, NDArray[np.int64] | slice]]:
    """(owner, which of the fingerprints are its) of all who own any of them, in rising order."""
    if owners == 1:
        return [(0, slice(None))] if fingerprints.size else []
    mine = owners_of(fingerprints, owners)
    return [(owner, np.flatnonzero(mine == owner)) for owner in np.bincount(mine).nonzero()[0].tolist()]
