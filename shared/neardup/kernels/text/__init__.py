"""Kernels of text processing: HTML markup, character references, UTF-8 and tokens."""
