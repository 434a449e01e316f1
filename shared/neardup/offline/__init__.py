"""The offline pass: all settled documents at once, grouped into clusters.

corpus → gathered documents → without copies → pairs → edges → clusters → results, index, report
"""
