"""A generated crawl whose duplicates are known, for demos, tests and benchmarks. `truth.py` defines a duplicate."""

from neardup.sample.crawl import MEAN_BYTES, Sampled, sample_crawl
from neardup.sample.truth import Truth

__all__ = ["MEAN_BYTES", "Sampled", "Truth", "sample_crawl"]
