"""Probabilistic search: lookups of the likeliest bit flips in a single table (Sood & Loguinov 2011)."""
