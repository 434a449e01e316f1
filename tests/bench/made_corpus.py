"""Generated documents for the benchmark of clustering. They are made as sketches, and are the same in every run.

A document has 200 to 2000 shingles. Three in ten belong to groups of near-duplicates, whose sizes from 2 to 100 follow
Zipf's law (exponent 2, about 6 on average). Up to a fifth of the group's shingles are replaced in each document, and
its place in the corpus is random. The sizes of hosts follow Zipf's law, too (50 pages on average, the largest has a
tenth of all). All pages of a host have the same 40 template shingles.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from neardup.kernels.common.hashing import hash_word
from neardup.kernels.signatures.comparing import pack
from neardup.kernels.signatures.sketching import divisible, mips
from neardup.messages.document_columns import DocumentColumns
from neardup.messages.settled import Batch
from neardup.offline.corpus.corpus import Corpus, CorpusFile
from neardup.signatures.checksums import CHECKSUM_BYTES
from tests.support.corpus_files import write_file

M: Final = 128
SIGNATURE: Final = "made"
MOST_REPLACED: Final = 0.2
_IN_GROUPS: Final = 0.3
_LARGEST: Final = 100
_HOST_PAGES: Final = 50
_TEMPLATE: Final = 40
_PIECE: Final = 1 << 12
_FILE: Final = 1 << 16


class Made(NamedTuple):
    """Concatenated packed sketches with their start positions, MIPs vectors, and fingerprints."""

    words: NDArray[np.uint64]
    starts: NDArray[np.int64]
    mips: NDArray[np.uint32]
    fingerprints: NDArray[np.uint64]


def make(count: int, seed: int = 1997) -> Made:
    """Generate `count` documents."""
    rng = np.random.default_rng(seed)
    group = _groups(rng, count)
    sizes = rng.integers(200, 2001, count)[group]
    replaced = np.where(np.bincount(group, minlength=count)[group] > 1, rng.random(count) * MOST_REPLACED, 0.0)
    ranks = np.arange(1, max(2, count // _HOST_PAGES) + 1)
    host = rng.choice(ranks.size, count, p=(1 / ranks) / (1 / ranks).sum())
    vectors = np.empty((count, M), np.uint32)

    def piece(first: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        some = slice(first, first + _PIECE)
        found: tuple[NDArray[np.uint64], NDArray[np.int64]] = _sketches(
            first, group[some], sizes[some], replaced[some], host[some], vectors[some]
        )
        return found

    with ThreadPoolExecutor() as pool:
        pieces = list(pool.map(piece, range(0, count, _PIECE)))
    words = np.concatenate([words for words, _ in pieces])
    starts = np.concatenate([[0], np.cumsum(np.concatenate([lengths for _, lengths in pieces]))])
    fingerprints = rng.integers(0, 2**64, count, np.uint64)[group]
    for _ in range(4):
        flips = np.uint64(1) << rng.integers(0, 64, count, np.uint64)
        fingerprints ^= np.where(rng.random(count) < replaced / MOST_REPLACED, flips, np.uint64(0))
    return Made(words, starts, vectors, fingerprints)


def write(made: Made, corpus: Corpus, signature: str = SIGNATURE) -> None:
    """Write the documents to a corpus as settled documents, all unique."""
    count = made.starts.size - 1
    for number, first in enumerate(range(0, count, _FILE)):
        last = min(first + _FILE, count)
        rows = np.arange(first, last)
        checksums = np.zeros((rows.size, 3 * CHECKSUM_BYTES), np.uint8)
        for level in range(3):
            checksums[:, level * CHECKSUM_BYTES :][:, :8] = rows.astype("<u8").view(np.uint8).reshape(-1, 8)
        documents = DocumentColumns(
            id=np.stack([rows, np.zeros_like(rows), rows], axis=1),
            url=[f"https://made.example/{row}" for row in range(first, last)],
            fetched_at=[None] * rows.size,
            fingerprint=made.fingerprints[first:last],
            checksums=checksums,
            size=np.full(rows.size, 10_000),
            sketch=made.words[made.starts[first] : made.starts[last]],
            words=np.diff(made.starts[first : last + 1]),
            note=[None] * rows.size,
        )
        write_file(corpus, CorpusFile(0, number, number), [Batch(signature, documents, [None] * rows.size)])


def _groups(rng: np.random.Generator, count: int) -> NDArray[np.int64]:
    """Return the group number of each document, at random places; most documents are alone."""
    possible = np.arange(2, _LARGEST + 1)
    sizes = rng.choice(possible, count, p=possible**-2.0 / (possible**-2.0).sum())
    sizes = sizes[np.cumsum(sizes) <= _IN_GROUPS * count]
    members = np.repeat(np.arange(sizes.size), sizes)
    alone = sizes.size + np.arange(count - members.size)
    return rng.permutation(np.concatenate([members, alone]))


@njit(nogil=True, cache=True)
def _sketches(
    first: int,
    group: NDArray[np.int64],
    sizes: NDArray[np.int64],
    replaced: NDArray[np.float64],
    host: NDArray[np.int64],
    vectors: NDArray[np.uint32],
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    words = np.empty(group.size * 400, np.uint64)
    lengths = np.empty(group.size, np.int64)
    at = 0
    for i in range(group.size):
        hashes = np.empty(sizes[i], np.uint64)
        for j in range(sizes[i]):
            if j < _TEMPLATE:
                name, seed = host[i], 1
            elif (hash_word(np.uint64((first + i) << 20 | j), np.uint64(4)) >> np.uint64(11)) * 2.0**-53 < replaced[i]:
                name, seed = first + i, 2
            else:
                name, seed = group[i], 3
            hashes[j] = hash_word(np.uint64(name << 20 | j), np.uint64(seed))
        exponent = 0
        while sizes[i] > 100 << exponent:
            exponent += 1
        vectors[i] = mips(hashes, M)
        packed = pack(exponent, vectors[i], divisible(hashes, exponent))
        words[at : at + packed.size] = packed
        lengths[i] = packed.size
        at += packed.size
    return words[:at].copy(), lengths
