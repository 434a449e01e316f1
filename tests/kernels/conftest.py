import os

import numpy as np
import pytest
from hypothesis import settings

# Interpreted, the kernels are some hundred times slower and wrap around with a warning.
INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT") == "1"

if INTERPRETED:
    settings.register_profile("interpreted", max_examples=20, deadline=None, derandomize=True)


@pytest.fixture(autouse=True)
def _wrap_around() -> object:
    """numpy warns where machine integers wrap, as they must."""
    with np.errstate(over="ignore"):
        yield
