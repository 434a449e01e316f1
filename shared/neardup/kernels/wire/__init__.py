"""Kernels that bound the size of a message before it is decoded."""
