"""Evaluation of verdicts: labelled pairs of pages against the predictions of the product and of each single method.

pairs → measures → predictions → confusion with intervals; thresholds by cross-validation; charts.
"""
