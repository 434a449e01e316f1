"""How good the verdicts are: labelled pairs of pages against what we, and each method alone, say of them.

pairs → measures → predictions → confusion, with intervals; thresholds by cross-validation; charts.
"""
