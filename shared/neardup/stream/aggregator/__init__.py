"""The aggregator service: partitioned owners that join matches and write verdicts."""
