"""Kernels of the offline pass: postings, sketch keys, verification of pairs and cluster leaders."""
