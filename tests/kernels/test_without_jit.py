"""Tests of the kernels as plain Python, with the JIT off, on fewer examples."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = (
    "tests/index/test_design.py::test_permuting_moves_bits_and_is_invertible",
    "tests/index/test_slice.py::test_any_sequence_of_operations_has_the_results_of_the_twin",
    "tests/index/test_batch.py::test_small_batches",
    "tests/index/test_buckets.py::test_any_sequence_of_operations_has_the_results_of_the_twin",
    "tests/index/test_psm.py::test_sets_are_generated_once_each_in_order_of_probability",
    "tests/index/test_psm.py::test_flips_are_the_most_likely_sets_by_candidates_or_heap",
    "tests/index/test_psm.py::test_only_the_requested_sets_are_generated",
)


def test_the_kernels_give_the_same_results_with_the_jit_off() -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "NEARDUP_TEST_EXAMPLES": "15"}
    # Machine integers overflow as intended; numpy warns about it where compiled code does not.
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-W", "ignore::RuntimeWarning", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *TESTS], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
