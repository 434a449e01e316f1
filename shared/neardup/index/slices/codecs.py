"""How a run keeps its keys: plain, or compressed one way or another."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from neardup.index.lsm.array_pool import ArrayPool
from neardup.index.slices.compressed_runs import EliasFanoBuilder, EliasFanoRun, HuffmanBuilder, HuffmanRun
from neardup.index.slices.runs import Builder, PlainBuilder, PlainRun, SortedRun


class Codec(StrEnum):
    """Names in settings and snapshots. Elias-Fano is smaller and faster than Huffman; that one is the paper's."""

    PLAIN = "plain"
    ELIAS_FANO = "elias-fano"
    HUFFMAN = "huffman"


_RUNS: Final[Mapping[Codec, Callable[..., SortedRun]]] = {
    Codec.PLAIN: PlainRun,
    Codec.ELIAS_FANO: EliasFanoRun,
    Codec.HUFFMAN: HuffmanRun,
}


def make_builder(
    codec: Codec, keys: NDArray[np.uint64], *, skip: int, leading: int, epoch: int, spares: ArrayPool | None = None
) -> Builder:
    """The builder of that codec for keys in rising order, no two equal; a plain one takes memory from `spares`."""
    if codec is Codec.ELIAS_FANO:
        return EliasFanoBuilder(keys, skip=skip, epoch=epoch)
    if codec is Codec.HUFFMAN:
        return HuffmanBuilder(keys, skip=skip, epoch=epoch)
    return PlainBuilder(keys, skip=skip, leading=leading, epoch=epoch, spares=spares)


def codec_of(run: SortedRun) -> Codec:
    """Which codec made this run."""
    return next(codec for codec, kind in _RUNS.items() if type(run) is kind)


def run_from_parts(codec: Codec, parts: Mapping[str, NDArray[Any]], *, skip: int, epoch: int) -> SortedRun:
    """The run whose `parts()` these are."""
    return _RUNS[codec](**parts, skip=skip, epoch=epoch)
