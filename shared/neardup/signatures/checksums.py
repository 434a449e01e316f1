"""Checksums of the three levels of identity in Broder 1997, "Identical documents": bytes, tokens, selected shingles.

There is one checksum per level, so copies are found by lookup. Pages that agree on one level agree on the following
levels. XXH3 is not a cryptographic hash and need not be one: an author who wants a page to count as a copy can simply
copy the other page.
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
