"""Measurements of recall and anomalies: canaries, a shadow sample and a watch over hosts."""
