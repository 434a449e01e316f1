"""Compressed runs: Elias-Fano, and the Huffman blocks of Manku 2007. Both return the same results as plain runs."""

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.index.lsm.key_directory import KeyDirectory
from neardup.index.lsm.lookup import Found, Lookup
from neardup.index.plan.table import leading_mask
from neardup.kernels.index import elias_fano, huffman

_SPARE_WORDS: Final = 2  # kernels read one word past the end


class EliasFanoRun:
    """A run of about 64 - log2(n) + 2 bits per key, plus an eighth for the directory (see kernels/index/elias_fano)."""

    def __init__(
        self,
        lower: NDArray[np.uint64],
        upper: NDArray[np.uint64],
        samples: NDArray[np.uint32],
        shape: NDArray[np.uint64],
        *,
        skip: int,
        epoch: int,
    ) -> None:
        self.epoch = epoch
        self._lower, self._upper, self._samples, self._shape = lower, upper, samples, shape
        self._size = int(shape[0])
        self._encoded = elias_fano.EncodedKeys(lower, upper, samples, np.uint64(shape[2]), skip, int(shape[1]))
        self._resume = (0, 0)

    @property
    def size(self) -> int:
        return self._size

    @property
    def nbytes(self) -> int:
        return int(self._lower.nbytes + self._upper.nbytes + self._samples.nbytes)

    def probe(self, lookup: Lookup, found: Found) -> int:
        return found.collect_capped(
            lookup,
            lambda start: elias_fano.probe_elias_fano(
                self._encoded, lookup.queries, lookup.leading, start, found.buffers, found.count
            ),
        )

    def read(self, start: int, stop: int) -> NDArray[np.uint64]:
        at, place = self._resume if self._resume[0] <= start else (0, 0)
        out = np.empty(stop - at, np.uint64)
        place = elias_fano.decode(self._encoded, at, stop, place, out)
        self._resume = (stop, place)
        return out[start - at :]

    def parts(self) -> Mapping[str, NDArray[np.generic]]:
        return {"lower": self._lower, "upper": self._upper, "samples": self._samples, "shape": self._shape}


class EliasFanoBuilder:
    """Builds an Elias-Fano run."""

    def __init__(self, keys: NDArray[np.uint64], *, skip: int, epoch: int) -> None:
        self._keys, self._skip, self._epoch, self._at = keys, skip, epoch, 0
        # There is about one upper value per key, rounded down so that the zeros take at most one bit per key.
        self._upper_bits = max(1, min(keys.size.bit_length() - 1, 64 - skip))
        width = 64 - skip - self._upper_bits
        values = 1 << self._upper_bits
        self._lower: NDArray[np.uint64] = np.empty(keys.size * width // 64 + _SPARE_WORDS, np.uint64)
        self._upper: NDArray[np.uint64] = np.empty((keys.size + values) // 64 + _SPARE_WORDS, np.uint64)
        self._samples: NDArray[np.uint32] = np.empty(values // elias_fano.SAMPLE + 1, np.uint32)

    @property
    def nbytes(self) -> int:
        return int(self._lower.nbytes + self._upper.nbytes + self._samples.nbytes)

    def step(self, budget: int) -> bool:
        stop = min(self._keys.size, self._at + budget)
        elias_fano.encode(
            self._keys, self._at, stop, self._skip, self._upper_bits, self._lower, self._upper, self._samples
        )
        self._at = stop
        return stop == self._keys.size

    def run(self) -> EliasFanoRun:
        prefix = int(self._keys[0]) & leading_mask(self._skip) if self._keys.size else 0
        shape = np.array([self._keys.size, self._upper_bits, prefix], np.uint64)
        return EliasFanoRun(self._lower, self._upper, self._samples, shape, skip=self._skip, epoch=self._epoch)


class HuffmanRun:
    """A run of 1024-byte blocks with the last key of each and a directory on these (see kernels/index/huffman)."""

    def __init__(
        self,
        words: NDArray[np.uint64],
        last_keys: NDArray[np.uint64],
        counts: NDArray[np.uint16],
        lengths: NDArray[np.int64],
        *,
        skip: int,
        epoch: int,
    ) -> None:
        self.epoch = epoch
        self._words, self._last_keys, self._counts, self._lengths = words, last_keys, counts, lengths
        self._directory = KeyDirectory.of(last_keys, skip)
        self._code = huffman.Code(lengths, *huffman.canonical_codes(lengths))
        self._blocks = huffman.Blocks(words, last_keys, counts)
        self._ends = np.cumsum(counts, dtype=np.int64)

    @property
    def size(self) -> int:
        return int(self._ends[-1]) if self._ends.size else 0

    @property
    def nbytes(self) -> int:
        return int(self._words.nbytes + self._last_keys.nbytes + self._counts.nbytes + self._directory.nbytes)

    def probe(self, lookup: Lookup, found: Found) -> int:
        order = np.argsort(lookup.keys)
        ordered = Lookup(lookup.keys[order], lookup.limits[order], lookup.leading, lookup.cap)
        return found.collect_capped(
            lookup,
            lambda start: huffman.probe_huffman(
                self._blocks, self._code, self._directory.entries, ordered.queries, order, start, found.buffers,
                found.count,
            ),
        )  # fmt: skip

    def read(self, start: int, stop: int) -> NDArray[np.uint64]:
        first, last = np.searchsorted(self._ends, [start, stop - 1], "right").tolist()
        begin = int(self._ends[first - 1]) if first else 0
        out = np.empty(int(self._counts[first : last + 1].sum()), np.uint64)
        huffman.decode_blocks(self._blocks, first, min(last, self._counts.size - 1), self._code, out)
        return out[start - begin : stop - begin]

    def parts(self) -> Mapping[str, NDArray[np.generic]]:
        return {
            "words": self._words, "last_keys": self._last_keys, "counts": self._counts, "lengths": self._lengths,
        }  # fmt: skip


class HuffmanBuilder:
    """Builds a Huffman run in two passes over the keys: one counts positions, one encodes."""

    def __init__(self, keys: NDArray[np.uint64], *, skip: int, epoch: int) -> None:
        self._keys, self._skip, self._epoch = keys, skip, epoch
        self._positions = np.zeros(64, np.int64)
        self._counted = self._encoded = self._block = self._bit = 0
        self._code: huffman.Code | None = None

    @property
    def nbytes(self) -> int:
        return 0 if self._code is None else sum(array.nbytes for array in self._blocks)

    def step(self, budget: int) -> bool:
        stop = min(self._keys.size, self._counted + budget)
        huffman.count_positions(self._keys, self._counted, stop, self._positions)
        self._counted = stop
        if stop < self._keys.size:
            return False
        if self._code is None:
            self._code = self._allocate()
        stop = min(self._keys.size, self._encoded + budget)
        self._encoded, self._block, self._bit = huffman.encode(
            self._keys, self._encoded, stop, self._code, self._blocks, self._block, self._bit
        )
        assert self._encoded == stop, "blocks were counted for the longest code"
        return stop == self._keys.size

    def _allocate(self) -> huffman.Code:
        lengths = huffman.code_lengths(self._positions)
        bits = int((self._positions * (lengths + np.arange(64))).sum())
        # A block stores one key whole, and wastes less than the bits of one key at its end.
        longest = int((lengths + np.arange(64))[self._positions > 0].max(initial=0))
        blocks = bits // (huffman.BLOCK_BITS - 64 - longest) + 1
        self._blocks = huffman.Blocks(
            np.empty(blocks * huffman.BLOCK_WORDS + _SPARE_WORDS, np.uint64),
            np.empty(blocks, np.uint64),
            np.empty(blocks, np.uint16),
        )
        return huffman.Code(lengths, *huffman.canonical_codes(lengths))

    def run(self) -> HuffmanRun:
        assert self._code is not None
        used = self._block + 1 if self._keys.size else 0
        last_keys, counts = self._blocks.last_keys[:used].copy(), self._blocks.counts[:used].copy()
        words = self._blocks.words[: used * huffman.BLOCK_WORDS + _SPARE_WORDS]
        words[-_SPARE_WORDS:] = 0
        return HuffmanRun(words, last_keys, counts, self._code.lengths, skip=self._skip, epoch=self._epoch)
