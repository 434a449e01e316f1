"""Clusters of documents: exact copies, verified edges, groups and their representatives."""
