"""Broder's three levels of identity (Broder 1997, "Identical documents"): bytes, canonical tokens, selected shingles.

Each is one checksum, so that copies are found by looking up, and each level implies the next. XXH3 is not
cryptographic, and need not be: who wants a page called a copy of another can copy it.
"""

from typing import Final

import numpy as np
import xxhash
from numpy.typing import NDArray

CHECKSUM_BYTES: Final = 16
NAME: Final = "xxh3-128"


def checksum_of_content(content: bytes) -> bytes:
    """Return the checksum of the raw content of a page."""
    return xxhash.xxh3_128_digest(content)


def checksum_of_hashes(hashes: NDArray[np.uint64]) -> bytes:
    """Return the checksum of hashes in their order, which does not depend on the machine's byte order."""
    return xxhash.xxh3_128_digest(hashes.astype("<u8", copy=False).tobytes())
