"""Kernels compiled by numba: arrays in, arrays out. They import numpy and numba only.

Type hints declare integers as Python's, whereas they are numpy's at run time; pyproject.toml disables the type checks
that would fail for this reason.
"""

from neardup.kernels import cache

cache.install()
