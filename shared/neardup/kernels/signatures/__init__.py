"""Kernels of signatures: shingles, simhash votes, min-wise sketches and their comparison."""
