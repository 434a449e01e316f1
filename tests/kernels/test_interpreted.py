"""Tests of the same kernels with the JIT off."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kernels.conftest import INTERPRETED


@pytest.mark.skipif(INTERPRETED, reason="this is the run with the JIT off")
def test_kernels_equal_their_twins_without_the_jit() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--hypothesis-profile=interpreted"]
    done = subprocess.run(
        [*command, str(Path(__file__).parent)],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
