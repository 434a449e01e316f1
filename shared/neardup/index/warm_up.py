"""Loading of kernels before the stream needs them.

Numba loads a kernel on its first call. If there is no cached version, numba compiles the kernel, which takes a second
or two during which no other thread runs. The first page calls most kernels, but not those for full tails and merges,
which would delay later pages.
"""

from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from neardup.index.buckets.table import BucketTable
from neardup.index.plan.table import Table
from neardup.index.slices.codecs import Codec
from neardup.index.slices.runs import LEAST_FILTERED
from neardup.index.slices.slice import Slice, SliceSettings

_ROOM: Final = LEAST_FILTERED
"""Capacity of the tail in keys. It must be this large because smaller runs have no bitmap."""
_ROUNDS: Final = 6
"""Number of batches of keys, each as large as the tail, which is enough for a merge."""


@cache
def warm_up_buckets() -> None:
    """Load the kernels of bucket tables. Only the first call in a process has an effect."""
    table = BucketTable(recent=_ROOM)
    for keys in _keys():
        table.probe_and_insert(keys, keys)


@cache
def warm_up_slices(codec: Codec, leading: int) -> None:
    """Load the kernels of slices with `leading` leading bits whose large runs have this codec, once per process."""
    table = Slice(Table.plain(leading), settings=SliceSettings(codec=codec, tail=_ROOM, compress_from=2 * _ROOM))
    for keys in _keys():
        table.probe_and_insert(keys, 3)


def _keys() -> NDArray[np.uint64]:
    return np.random.default_rng(0).integers(0, 2**64, (_ROUNDS, _ROOM), np.uint64)
