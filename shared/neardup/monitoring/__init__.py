"""Measurements of recall and anomalies: canary copies, a shadow sample and a watch over hosts."""
