"""Kernels: arrays in, arrays out. Import numpy and numba, nothing else."""
