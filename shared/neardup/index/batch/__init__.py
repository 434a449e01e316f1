"""Batch search of many queries in one sequential scan of a fingerprint file."""
