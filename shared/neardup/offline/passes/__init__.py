"""Incremental and resumable passes over the corpus, with their phases, lock and run file."""
