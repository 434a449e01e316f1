"""Kernels of the fingerprint index: probes of tables and buckets, run codecs and bit flips."""
