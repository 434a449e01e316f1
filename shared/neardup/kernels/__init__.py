"""Kernels: compiled functions that take and return arrays. They import numpy and numba, and nothing else."""

from neardup.kernels import cache

cache.install()
