"""Pair sources, which find documents that may belong together, and the postings and runs that they use."""
