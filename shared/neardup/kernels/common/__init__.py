"""Kernels shared by every other group: bit operations, hashing, prefetching, sorting and merging."""
