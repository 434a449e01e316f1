import os

import numpy as np
import pytest
from hypothesis import settings

# In the interpreter, the kernels are some hundred times slower, and numpy warns about integer overflow.
INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT") == "1"

if INTERPRETED:
    settings.register_profile("interpreted", max_examples=20, deadline=None, derandomize=True)


@pytest.fixture(autouse=True)
def _wrap_around() -> object:
    """Ignore numpy's warnings about overflow of machine integers, which is intended."""
    with np.errstate(over="ignore"):
        yield
