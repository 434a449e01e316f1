"""Packed sketches, the form for messages and storage: one array of 64-bit words per document, about 700 bytes.

A packed sketch contains one byte per MIPs value. Two bytes agree by chance with probability 1/256, for which the
estimate is corrected (b-bit minwise hashing). It contains the whole sample V_i, because the offline pass sorts all
documents by their sampled shingles. If the settings enable spot signatures, it also contains up to 255 of them, those
with the smallest hashes, each as 56 bits of the hash and 8 bits of the count.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.kernels.signatures import comparing
from neardup.signatures.bands import BandFilter
from neardup.signatures.signature import Sketches

_BY_CHANCE: Final = 1 / 256
_EXPONENTS: Final = 64
"""Number of possible exponents i of a modulus 2^i of 64-bit hashes."""
LEAST_SAMPLED: Final = 8
"""Minimum number of sampled shingles for an estimate of containment."""


_MOST_SPOTS: Final = 255
_WORD: Final = 64
_COUNT: Final = np.uint64(0xFF)


class Likeness(NamedTuple):
    """Estimates from two sketches: resemblance, and containment in both directions; None if the sample is too small."""

    resemblance: float
    a_in_b: float | None
    b_in_a: float | None


def pack_sketch(sketches: Sketches, *, keep_spots: bool = False) -> NDArray[np.uint64]:
    """Return the packed sketch of a document."""
    packed: NDArray[np.uint64] = comparing.pack(sketches.sample.i, sketches.mips, sketches.sample.values)
    spots = sketches.spots
    if not keep_spots or not spots.hashes.size:
        return packed
    counts = np.minimum(spots.counts[:_MOST_SPOTS], int(_COUNT)).astype(np.uint64)
    packed[0] |= np.uint64(counts.size << 24)
    return np.concatenate([packed, spots.hashes[:_MOST_SPOTS] & ~_COUNT | counts])


def is_packed(words: NDArray[np.uint64], m: int) -> bool:
    """Return True if the array is a sketch with m MIPs values whose length matches its header."""
    if not words.size:
        return False
    header = int(words[0])
    length = 1 + (m + 7) // 8 + (header >> 32) + (header >> 24 & 0xFF)
    return header >> 8 & 0xFFFF == m and header & 0xFF < _EXPONENTS and words.size == length


def are_packed(words: NDArray[np.uint64], counts: NDArray[np.int64], m: int) -> bool:
    """Return True if an array consists of sketches with m MIPs values, of `counts` words each."""
    if not counts.all():
        return False
    headers = words[np.cumsum(counts) - counts]
    sampled, spots = (headers >> np.uint64(32)).astype(np.int64), (headers >> np.uint64(24) & np.uint64(0xFF))
    lengths = 1 + (m + 7) // 8 + sampled + spots.astype(np.int64)
    of_m = headers >> np.uint64(8) & np.uint64(0xFFFF) == m
    return bool((of_m & (headers & np.uint64(0xFF) < _EXPONENTS) & (lengths == counts)).all())


def mips_bytes(packed: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """Return the stored byte of every MIPs value. Bands are hashes of these bytes."""
    m = int(packed[0]) >> 8 & 0xFFFF
    return packed[1 : 1 + (m + 7) // 8].astype("<u8").view(np.uint8)[:m].astype(np.uint32)


def sample_values(packed: NDArray[np.uint64]) -> tuple[int, NDArray[np.uint64]]:
    """Return (i, V_i) of a packed sketch."""
    header = int(packed[0])
    start = 1 + ((header >> 8 & 0xFFFF) + 7) // 8
    return header & 0xFF, packed[start : start + (header >> 32)]


def compare(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> Likeness:
    """Return the estimates from two sketches. Raises ValueError if their MIPs vectors have different lengths.

    Both sketches must have the same signature version.
    """
    m, other = int(a[0]) >> 8 & 0xFFFF, int(b[0]) >> 8 & 0xFFFF
    if m != other:
        raise ValueError(f"expected two MIPs vectors of one length, got {m} and {other}")
    return likeness_of(m, *comparing.compare(a, b))


def likeness_of(m: int, equal: int, left: int, right: int, shared: int) -> Likeness:
    """Return the estimates from the counts of `comparing.compare` for two sketches with m MIPs values."""
    return Likeness(
        max(0.0, (equal / m - _BY_CHANCE) / (1 - _BY_CHANCE)),
        shared / left if left >= LEAST_SAMPLED else None,
        shared / right if right >= LEAST_SAMPLED else None,
    )


def bands_in_common(a: NDArray[np.uint64], b: NDArray[np.uint64], bands: BandFilter) -> int:
    """Return an integer whose bit i is set if the two sketches agree in band i."""
    shared = 0
    for first in range(0, bands.k, _WORD):
        shared |= int(comparing.shared_bands(a, b, first, min(first + _WORD, bands.k), bands.s)) << first
    return shared
