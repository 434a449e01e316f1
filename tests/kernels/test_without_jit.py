"""The kernels are plain Python as well: their tests also run with the JIT off, on fewer examples."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = (
    "tests/index/test_design.py::test_permuting_moves_bits_and_can_be_undone",
    "tests/index/test_slice.py::test_any_mix_of_steps_finds_what_the_twin_finds",
    "tests/index/test_batch.py::test_small_batches",
    "tests/index/test_buckets.py::test_any_mix_of_steps_finds_what_the_twin_finds",
    "tests/index/test_psm.py::test_sets_come_in_order_of_probability_and_each_once",
    "tests/index/test_psm.py::test_flips_are_the_likeliest_sets_by_candidates_or_heap",
    "tests/index/test_psm.py::test_only_the_wanted_sets_are_made",
)


def test_the_kernels_say_the_same_with_the_jit_off() -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "NEARDUP_TEST_EXAMPLES": "15"}
    # Machine words wrap around; numpy warns about it where compiled code does not.
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-W", "ignore::RuntimeWarning", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *TESTS], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
