"""Candidate pairs of documents from postings, sketch keys and fingerprints, in bounded memory."""
