"""How a run keeps its keys: plain, or compressed one way or another."""

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from neardup.runs import Builder, PlainBuilder


class Codec(StrEnum):
    """Names in settings and snapshots."""

    PLAIN = "plain"
    ELIAS_FANO = "elias-fano"
    HUFFMAN = "huffman"


def make_builder(codec: Codec, keys: NDArray[np.uint64], *, skip: int, leading: int, epoch: int) -> Builder:
    """The builder of that codec for keys in rising order."""
    return PlainBuilder(keys, skip=skip, leading=leading, epoch=epoch)
