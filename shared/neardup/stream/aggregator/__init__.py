"""The aggregator service: partitioned owners that collect matches and emit verdicts."""
