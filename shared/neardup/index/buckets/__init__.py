"""Bucket tables: exact-key lookup of fingerprints for the bands of a sketch."""
