"""Queries of the results of a pass: lookups by URL, similar documents, moved and changed pages."""
