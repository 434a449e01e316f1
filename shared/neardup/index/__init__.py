"""The fingerprint index: sharded tables that find earlier fingerprints within a few bits of a new one."""
