"""Slices of permuted tables: a memtable in front of plain or compressed sorted runs."""
