"""Tests that after the warm-up a full memtable and a merge compile no kernel."""

import subprocess
import sys

import pytest

from neardup.index.slices.codecs import Codec

PROGRAM = """
import sys
import numpy as np
from numba.core.dispatcher import Dispatcher
from neardup.index.buckets.table import BucketTable
from neardup.index.slices.codecs import Codec
from neardup.deployment.plan import plan_of
from neardup.settings import Settings
from neardup.index.slices.slice import Slice, SliceSettings
from neardup.index.warm_up import warm_up_buckets, warm_up_slices

codec = Codec(sys.argv[1])
warm_up_buckets()
table = plan_of(Settings()).tables[3]
warm_up_slices(codec, table.leading)

def refuse(self, signature):
    raise AssertionError(f"{self.py_func.__name__} was not loaded for {signature}")

Dispatcher.compile = refuse
random = np.random.default_rng(1)
buckets = BucketTable()
slice_ = Slice(table, settings=SliceSettings(codec=codec))
for _ in range(30):
    keys = random.integers(0, 2**64, 5000, np.uint64)
    buckets.probe_and_insert(keys, keys)
    slice_.probe_and_insert(keys, 3)
assert buckets.counts.merges and slice_.counts.merges
"""


@pytest.mark.parametrize("codec", list(Codec))
def test_all_kernels_are_loaded(codec: Codec) -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM, codec], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]
