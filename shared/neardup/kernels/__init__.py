"""Kernels compiled by numba: arrays in, arrays out. They import numpy and numba only.

Integers are numpy's at run time and Python's in the signatures; pyproject.toml turns off the type checks that differ.
"""

from neardup.kernels import cache

cache.install()
