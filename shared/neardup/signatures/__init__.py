"""Signatures of a page: features, simhash fingerprints, sketches, bands and checksums."""
