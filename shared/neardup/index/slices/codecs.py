"""The codecs of sorted runs: plain, Elias-Fano and Huffman."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from neardup.index.lsm.array_pool import ArrayPool
from neardup.index.slices.compressed_runs import EliasFanoBuilder, EliasFanoRun, HuffmanBuilder, HuffmanRun
from neardup.index.slices.runs import Builder, PlainBuilder, PlainRun, SortedRun


class Codec(StrEnum):
    """Codecs by their names in settings and snapshots.

    Elias-Fano runs are smaller and faster than runs in the Huffman code of Manku 2007.
    """

    PLAIN = "plain"
    ELIAS_FANO = "elias-fano"
    HUFFMAN = "huffman"


_RUNS: Final[Mapping[Codec, Callable[..., SortedRun]]] = {
    Codec.PLAIN: PlainRun,
    Codec.ELIAS_FANO: EliasFanoRun,
    Codec.HUFFMAN: HuffmanRun,
}


def make_builder(
    codec: Codec, keys: NDArray[np.uint64], *, skip: int, leading: int, epoch: int, pool: ArrayPool | None = None
) -> Builder:
    """Return the codec's builder for distinct keys in rising order. A plain run takes its memory from `pool`."""
    if codec is Codec.ELIAS_FANO:
        return EliasFanoBuilder(keys, skip=skip, epoch=epoch)
    if codec is Codec.HUFFMAN:
        return HuffmanBuilder(keys, skip=skip, epoch=epoch)
    return PlainBuilder(keys, skip=skip, leading=leading, epoch=epoch, pool=pool)


def codec_of(run: SortedRun) -> Codec:
    """Return the codec of a run."""
    return next(codec for codec, kind in _RUNS.items() if type(run) is kind)


def run_from_parts(codec: Codec, parts: Mapping[str, NDArray[Any]], *, skip: int, epoch: int) -> SortedRun:
    """Return the run whose `parts()` are given."""
    return _RUNS[codec](**parts, skip=skip, epoch=epoch)
