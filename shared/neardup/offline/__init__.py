"""The offline pass: clusters of all documents that the stream has judged.

corpus → column store → exact copies → candidate pairs → edges → clusters → results, index, report
"""
