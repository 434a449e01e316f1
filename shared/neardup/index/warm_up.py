"""Loads kernels before the stream needs them.

Numba loads a kernel when it is first called, and compiles it where nobody did before: a second or two in which no other
thread runs. Most kernels are called with the first page, but not those of a full tail and of a merge: pages would wait
for them in the middle of the stream.
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
"""Of a tail: smaller runs have no bitmap."""
_ROUNDS: Final = 6
"""Of as many keys as there is room for: enough for a merge."""


@cache
def warm_up_buckets() -> None:
    """Everything that a bucket table calls. Only the first call of a process does anything."""
    table = BucketTable(recent=_ROOM)
    for keys in _keys():
        table.probe_and_insert(keys, keys)


@cache
def warm_up_slices(codec: Codec, leading: int) -> None:
    """The same for a slice whose large runs have this codec, of a table with so many leading bits."""
    table = Slice(Table.plain(leading), settings=SliceSettings(codec=codec, tail=_ROOM, compress_from=2 * _ROOM))
    for keys in _keys():
        table.probe_and_insert(keys, 3)


def _keys() -> NDArray[np.uint64]:
    return np.random.default_rng(0).integers(0, 2**64, (_ROUNDS, _ROOM), np.uint64)
